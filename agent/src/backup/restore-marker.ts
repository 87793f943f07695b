import { mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readEngineFile } from "../os/engine-file.ts";
import type { JobTarget } from "./job.ts";

/** Origin of restored data, in a file beside the data on the same disk. */
export interface RestoreMarker {
  readonly restoreId: string;
  readonly service: string;
  readonly backup: string;
  readonly target: JobTarget;
  /** False while the data are neither the old ones nor the restored ones. */
  readonly finished: boolean;
  /** Findings of the examination of restored data, one JSON object each. */
  readonly findings?: readonly string[];
  /** Warnings for users about restored data that were left unchanged. */
  readonly warnings?: readonly string[];
}

export const restoreMarker = "restore.json";

/** Undefined for data that were created on this machine. */
export async function readMarker(data: string): Promise<RestoreMarker | undefined> {
  try {
    return JSON.parse(await readEngineFile(join(data, restoreMarker))) as RestoreMarker;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function writeMarker(data: string, marker: RestoreMarker): Promise<void> {
  await mkdir(data, { recursive: true });
  const draft = join(data, `${restoreMarker}.new`);
  const file = await open(draft, "w", 0o640);
  try {
    await file.writeFile(JSON.stringify(marker));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, join(data, restoreMarker));
  await syncPath(data);
}
