import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Loop devices of the host whose disk is this file, by its inode: the name that the kernel tells is that of the machine's
 * own mounts, and lacks what lies above a mount of the host.
 */
export async function loopsOf(diskFile: string): Promise<string[]> {
  try {
    const { stdout } = await runProgram("losetup", ["--associated", diskFile, "--noheadings", "--output", "NAME"]);
    return stdout.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
  } catch (error) {
    // A host without the program has no machine with such a disk.
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Makes the devices see that their file has grown. */
export async function refreshLoops(diskFile: string): Promise<void> {
  for (const device of await loopsOf(diskFile)) await runProgram("losetup", ["--set-capacity", device]);
}
