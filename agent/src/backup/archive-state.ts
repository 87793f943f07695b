import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LogSettings } from "@holdfast/common/backup/log-object.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { readEngineFile } from "../os/engine-file.ts";

/** Progress of a log archive, in a file beside the data. It may lack the newest object of the store, never more. */
export interface ArchiveState {
  readonly archiveId: string;
  readonly term: number;
  readonly branch: string;
  /** First and last object of the term. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly fromPosition: string;
  readonly durablePosition: string;
  readonly fromTimeMs: number;
  /** Milliseconds since 1970; 0 if unknown. */
  readonly durableTimeMs: number;
  readonly storedBytes: number;
  /** Runs of earlier terms, in order; absent if there are none. */
  readonly earlier?: readonly ArchiveRun[];
  /** Engine settings under which the log was written; absent if none are recorded. */
  readonly settings?: readonly LogSettings[];
}

/** Contiguous log objects of one term. */
export interface ArchiveRun {
  readonly term: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Newest recorded commit in the range, by the clock of the primary; absent in states that older releases wrote. */
  readonly toTimeMs?: number;
}

const name = "archive.json";

export async function readArchiveState(data: string): Promise<ArchiveState | undefined> {
  try {
    return JSON.parse(await readEngineFile(join(data, name))) as ArchiveState;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function writeArchiveState(data: string, state: ArchiveState): Promise<void> {
  await mkdir(data, { recursive: true });
  const draft = join(data, `${name}.new`);
  const file = await open(draft, "w", 0o640);
  try {
    await file.writeFile(JSON.stringify(state));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, join(data, name));
  await syncPath(data);
}

/** Removes the state from data that become another primary's, whose own state counts. */
export async function dropArchiveState(data: string): Promise<void> {
  await rm(join(data, name), { force: true });
  await syncPath(data);
}
