import { existsSync } from "node:fs";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance, WritableSpace } from "../../engine-driver.ts";
import { repositoryDirectory } from "../layout.ts";
import { removeRepository } from "./repository.ts";

const intervalMs = 2_000;
/** Part of the disk that a repository does not take while a backup reads it (`SpoolFiles`). */
const maxPart = 0.12;

/**
 * Ends a snapshot that nothing reads: the engine continues to write it although the component of the backup was killed.
 */
export function createSpaceReclaimer({ runAsEngine: run }: EngineDeps, now: () => number) {
  let measuredMs = Number.NEGATIVE_INFINITY;

  return async (instance: Instance, space: WritableSpace, signal: AbortSignal): Promise<void> => {
    const directory = repositoryDirectory(instance);
    if (now() - measuredMs < intervalMs || !existsSync(directory)) return;
    measuredMs = now();
    const bytes = Number.parseInt(await run(["du", "--summarize", "--block-size=1", directory], { signal }), 10);
    if (bytes > space.totalBytes * maxPart || bytes > 2 * space.writableBytes)
      await removeRepository({ run }, instance, signal);
  };
}
