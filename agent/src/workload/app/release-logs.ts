import { readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

/** The logs of a machine's releases. Those of former releases stay readable within a limit over all of them. */
export interface ReleaseLogs {
  /** Base path of the log of a release. */
  path(releaseId: string): string;
  /** Base paths of all releases that have a log. */
  paths(): string[];
  /** Deletes the oldest segments of former releases beyond the limits. `ids`: the releases that are not former ones. */
  prune(ids: readonly string[]): void;
}

/** Size of a segment, and their number for one release. */
export const releaseLogSize = { maxBytes: 4 << 20, keep: 3 } as const;
/** Limits of the logs of all former releases. */
const formerBytesMax = 12 << 20;
const formerLogsMax = 20;

export function createReleaseLogs(stateDir: string): ReleaseLogs {
  const directory = join(stateDir, "log");
  const pathOf = (releaseId: string) => join(directory, `release-${releaseId}.log`);

  function segments() {
    return namesIn(directory).flatMap((name) => {
      const [, base = "", number] = /^(release-[a-z0-9-]+\.log)\.(\d+)$/.exec(name) ?? [];
      return number === undefined ? [] : [{ path: join(directory, base), number: Number(number) }];
    });
  }

  return {
    path: pathOf,
    paths: () => [...new Set(segments().map(({ path }) => path))].sort(),
    prune(ids) {
      const live = ids.map((id) => basename(pathOf(id)));
      const former = segments()
        .filter(({ path }) => !live.includes(basename(path)))
        .map((segment) => ({ ...segment, file: statSync(`${segment.path}.${segment.number}`) }))
        .toSorted((a, b) => b.file.mtimeMs - a.file.mtimeMs || b.number - a.number);
      const retained = new Set<string>();
      let bytes = 0;
      for (const { path, number, file } of former) {
        bytes += file.size;
        const fits = bytes <= formerBytesMax && (retained.has(path) || retained.size < formerLogsMax);
        if (fits) retained.add(path);
        else rmSync(`${path}.${number}`, { force: true });
      }
    },
  };
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    // Nothing was logged yet.
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}
