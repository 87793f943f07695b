import { open } from "node:fs/promises";
import { join } from "node:path";
import { writeAtomically } from "./durable-file.ts";
import { reportedListeners } from "./open-listeners.ts";
import { hasCode } from "./system-error.ts";

const fileName = "listeners";
const bytesMax = 16 * 1024;

/** Reports the open listeners of a process without a feed to the controller on the same host, in a shared directory. */
export async function writeListenersFile(directory: string): Promise<void> {
  await writeAtomically(join(directory, fileName), reportedListeners().toSorted().join("\n"));
}

/** The reported listeners; empty until there is a report. Only the first 16 KiB are read. */
export async function readListenersFile(directory: string): Promise<string[]> {
  try {
    await using file = await open(join(directory, fileName));
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytesMax), 0, bytesMax, 0);
    return buffer.subarray(0, bytesRead).toString("utf8").split("\n");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}
