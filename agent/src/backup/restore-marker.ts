import { mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readEngineFile } from "../os/engine-file.ts";
import type { JobTarget } from "./job.ts";

/** Whose data is on a data disk, where that was not made by the machine itself. It is on the same disk, beside the data. */
export interface RestoreMarker {
  readonly restoreId: string;
  readonly service: string;
  readonly backup: string;
  readonly target: JobTarget;
  /** False: what is there is neither the old data nor the new. */
  readonly finished: boolean;
  /** What the examination of finished data found, JSON each. */
  readonly findings?: readonly string[];
  /** Sentences for users on what is in finished data and was left as it is. */
  readonly warnings?: readonly string[];
}

export const restoreMarker = "restore.json";

/** Undefined for a disk whose data was made here. */
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
