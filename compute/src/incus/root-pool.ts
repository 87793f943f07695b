import { stat } from "node:fs/promises";
import type { RootStorage } from "../local/host-facts.ts";
import { fileSystemOf } from "../local/mount-info.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError } from "./incus-transport.ts";

/** First writes of a machine to its root. A root from an image is a snapshot without a copy. */
const firstRootWrites = 256 * 1024 ** 2;

/** A storage pool in Incus's REST API. */
interface Pool {
  /** `Created` for a healthy pool. */
  readonly status: string;
  readonly driver: string;
  readonly config: { readonly source?: string };
}

/**
 * Facts of a pool for roots. A pool with an error, or an unknown one, has a `problem`; an unreachable daemon is an
 * error of the call. `imageBytes` is the size of an image, for pools in which each root is a copy of it.
 */
export async function readRootPool(
  incus: Pick<IncusClient, "call">,
  pool: string,
  imageBytes: () => Promise<number>,
  signal: AbortSignal,
): Promise<RootStorage> {
  const path = `/1.0/storage-pools/${pool}`;
  const unknown = { totalBytes: 0, freeBytes: 0, firstBytes: 0, fileSystem: `pool ${pool}` };
  try {
    const { status, driver, config } = await incus.call<Pool>("GET", path, signal);
    if (status !== "Created")
      return { ...unknown, problem: `The host's storage pool is unavailable; Incus reports: ${status}.` };
    const { space } = await incus.call<{ space: { used: number; total: number } }>("GET", `${path}/resources`, signal);
    return {
      totalBytes: space.total,
      freeBytes: space.total - space.used,
      firstBytes: firstRootWrites + (driver === "dir" ? await imageBytes() : 0),
      fileSystem: (await sharedFileSystem(config.source)) ?? unknown.fileSystem,
      problem: "",
    };
  } catch (error) {
    if (!(error instanceof IncusError)) throw error;
    return { ...unknown, problem: `The host's storage pool is unavailable; Incus reports: ${error.message}.` };
  }
}

/**
 * File system id of a pool that is a directory of the host, which data disks may share. Undefined for a pool on a
 * separate file or disk.
 */
async function sharedFileSystem(source: string | undefined): Promise<string | undefined> {
  if (source === undefined || !source.startsWith("/")) return undefined;
  const isDirectory = await stat(source).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return isDirectory ? fileSystemOf(source) : undefined;
}
