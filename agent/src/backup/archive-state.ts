import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { LogSettings } from "@holdfast/common/backup/log-object.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { readEngineFile } from "../os/engine-file.ts";

/** How far an archive is: beside the data that its log is of. It may be one object behind the store, never ahead. */
export interface ArchiveState {
  readonly archiveId: string;
  readonly term: number;
  readonly branch: string;
  /** Of the term: first and last object. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly fromPosition: string;
  readonly durablePosition: string;
  readonly fromTimeMs: number;
  /** 0 while none is known. */
  readonly durableTimeMs: number;
  readonly storedBytes: number;
  /** What it has of earlier terms, in order; absent in what an older version wrote. */
  readonly earlier?: readonly ArchiveRun[];
  /** Settings that the log was written under; absent in what an older version wrote. */
  readonly settings?: readonly LogSettings[];
}

/** Log of one term, without a hole. */
export interface ArchiveRun {
  readonly term: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Its newest commit that was noted, by the clock of its primary; absent in what an older version wrote. */
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

/** For data that become another primary's: how far the archive is, those say. */
export async function dropArchiveState(data: string): Promise<void> {
  await rm(join(data, name), { force: true });
  await syncPath(data);
}
