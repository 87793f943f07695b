import type { OpenedSource } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { primaryBytes } from "../figures.ts";
import { opensearchVersion } from "../layout.ts";
import { asSourceRefused, removeRepository } from "./repository.ts";
import { restartOfRepository } from "./repository-files.ts";
import { type SnapshotRun, SpoolFull, startRun } from "./snapshot-run.ts";
import { spooledMembers } from "./spooled-members.ts";

/** Name of the only stream: the files of a repository with one snapshot. */
export const snapshotStream = "repository";

/** Rates of a first snapshot. One that is canceled may write for a second or two. */
const [slowest, fastest] = [1 << 20, 64 << 20];
const maxRestarts = 3;
const closeMs = 60_000;

interface SnapshotOptions {
  /** Bytes that the repository may take on each member's disk. */
  readonly limitBytes?: number;
}

/**
 * Takes a snapshot by the engine's own API, and sends its files while the engine writes them. Each member writes those
 * of its shards to its disk, and this one reads all of them. Each shard has all writes that the engine acknowledged
 * before the start; there is no one time across shards. The engine does not change the rate of a snapshot that runs, so
 * one that is faster than the store is repeated at the rate of the store.
 */
export async function openSnapshot(
  deps: Pick<EngineDeps, "run">,
  instance: Instance,
  signal: AbortSignal,
  { limitBytes }: SnapshotOptions = {},
): Promise<OpenedSource> {
  // An earlier component may have been killed during a snapshot.
  await removeRepository(deps, instance, signal);
  const members = await spooledMembers(deps, instance, limitBytes, signal);
  await Promise.all(members.map(({ files }) => files.remove(signal)));
  const limit = Math.min(...members.map((each) => each.limitBytes));
  const totalBytes = await primaryBytes(instance, signal);
  let dataTime = new Date();
  let run: SnapshotRun | undefined;

  async function start(bytesPerSecond: number): Promise<SnapshotRun> {
    dataTime = new Date();
    run = startRun(deps, instance, { bytesPerSecond, members }, signal);
    await run.started;
    return run;
  }

  async function* send(first: SnapshotRun): AsyncGenerator<Buffer> {
    let current = first;
    for (let restarts = 0; ; restarts += 1) {
      try {
        yield* current.frames();
        return;
      } catch (error) {
        if (!(error instanceof SpoolFull) || restarts === maxRestarts) throw asSourceRefused(error);
        await current.end(signal);
        yield restartOfRepository();
        current = await start(error.bytesPerSecond);
      }
    }
  }

  /** If the engine does not respond, its next start removes the files. */
  async function close(): Promise<void> {
    await run?.end(AbortSignal.timeout(closeMs)).catch(() => undefined);
  }

  try {
    const first = await start(Math.max(Math.min(limit / 4, fastest), slowest));
    return {
      streams: [{ name: snapshotStream, bytes: send(first) }],
      totalBytes,
      end: async () => ({ version: opensearchVersion, dataTime, positions: null }),
      close,
    };
  } catch (error) {
    await close();
    throw asSourceRefused(error);
  }
}
