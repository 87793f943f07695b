import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const mib = 1024 ** 2;

/** Free space in bytes with which no file can grow. */
const nothingBytes = 64 * 1024;

export async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

/** Writes a file `filler` to the directory that takes the disk's free space except `leaveBytes`. */
export async function fillDisk(directory: string, leaveBytes = 0): Promise<void> {
  const fits = async (piece: number) => leaveBytes === 0 || (await freeBytes(directory)) - leaveBytes >= piece;
  let filled = 0;
  for (let piece = 64 * mib; piece >= 4_096; ) {
    const args = ["--offset", String(filled), "--length", String(piece), join(directory, "filler")];
    if ((await fits(piece)) && (await run("fallocate", args).then(() => true, orFull))) filled += piece;
    else piece /= 2;
  }
  if (leaveBytes === 0 && (await freeBytes(directory)) >= nothingBytes) throw new Error(`${directory} is not full`);
}

/** Returns false if the error is a full disk; throws any other error. */
function orFull(error: Error): false {
  if (!error.message.includes("No space left on device")) throw error;
  return false;
}
