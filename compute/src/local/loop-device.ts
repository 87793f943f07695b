import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Loop devices of the host with this backing file, found by inode: the kernel's own path of the file is the one in the
 * machine's mounts, without the part above a mount of the host.
 */
export async function loopsOf(diskFile: string): Promise<string[]> {
  try {
    const { stdout } = await runProgram("losetup", ["--associated", diskFile, "--noheadings", "--output", "NAME"]);
    return stdout.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
  } catch (error) {
    // A host without losetup has no machine with such a disk.
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

/** Makes the devices adopt their file's new size. */
export async function refreshLoops(diskFile: string): Promise<void> {
  for (const device of await loopsOf(diskFile)) await runProgram("losetup", ["--set-capacity", device]);
}
