import { join } from "node:path";
import { measureDisk } from "../../../os/disk-space.ts";
import { ProgramFailed } from "../../../os/program.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory } from "../layout.ts";

const mib = 1 << 20;
/** Catalogs and the first WAL of the new version. */
const ownBytes = 256 * mib;
/** Divisor: this part of the disk must remain free beside two copies, since a fuller disk blocks writes. */
const freeShare = 10;

export interface CopySpace {
  /** True if the file system shares blocks between files (reflinks): a copy takes almost no space and time. */
  readonly clones: boolean;
  readonly neededBytes: number;
  readonly freeBytes: number;
}

/** Measures the space that a second copy of the data needs, and the free space. */
export async function measureCopySpace(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<CopySpace> {
  const { paths, spec } = instance;
  const directory = dataDirectory(instance);
  const storageBytes = Number(spec.storageBytes);
  const { freeBytes } = await measureDisk(paths.data, storageBytes, signal);
  if (await clonesFiles(run, instance, signal)) return { clones: true, neededBytes: ownBytes, freeBytes };
  const counted = await run(["du", "--summarize", "--block-size=1", directory], { signal });
  const dataBytes = Number.parseInt(counted, 10);
  return { clones: false, neededBytes: dataBytes + ownBytes + Math.floor(storageBytes / freeShare), freeBytes };
}

/** Sentence for users; undefined if the space suffices. */
export function shortageOf({ neededBytes, freeBytes }: CopySpace): string | undefined {
  if (freeBytes >= neededBytes) return undefined;
  const [needed, free] = [neededBytes, freeBytes].map((bytes) => Math.ceil(bytes / mib));
  return `The upgrade copies the data, which needs ${needed} MiB. ${free} MiB of the disk are free. Expand the storage first.`;
}

async function clonesFiles(run: EngineDeps["run"], instance: Instance, signal: AbortSignal): Promise<boolean> {
  const probe = `${dataDirectory(instance)}.probe`;
  try {
    await run(["cp", "--reflink=always", join(dataDirectory(instance), "PG_VERSION"), probe], { signal });
    return true;
  } catch (error) {
    if (error instanceof ProgramFailed) return false;
    throw error;
  } finally {
    await run(["rm", "-f", probe], { signal });
  }
}
