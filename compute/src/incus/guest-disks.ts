import { existsSync } from "node:fs";
import { mkdir, open, readdir, realpath, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { Enrollment } from "../compute-provider.ts";
import { createAtomically, removeDrafts } from "../local/atomic-file.ts";
import { diskFailure, createSparseFile } from "../local/data-disk.ts";
import { enrollmentText } from "../local/enrollment-file.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import type { GuestDiskPaths } from "./virtual-machine-config.ts";

/** State of the agent: journal, keys, logs, and samples of a day. Sparse. */
const stateBytes = 1024 ** 3;
/** One page, more than an enrollment with many controllers needs. */
const enrollmentBytes = 4_096;
const ending = ".squashfs";

/** Host directories as read-only squashfs disks for guests, each packed once. */
export interface PackedDirectories {
  /**
   * Path of the disk with the directory's contents; packs it first if it is missing (seconds). The contents of a name
   * never change.
   */
  pack(name: string, directory: string, signal: AbortSignal): Promise<string>;
  /** Removes disks of node images other than these. Guests continue to use open ones. */
  keepOnly(images: ReadonlySet<string>): Promise<void>;
}

export function createPackedDirectories(directory: string, lock: DirectoryLock): PackedDirectories {
  async function make(path: string, from: string, signal: AbortSignal): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await removeDrafts(path);
    // The draft of a killed process of an earlier release.
    await rm(`${path}.partial`, { force: true });
    await createAtomically(path, async (draft) => {
      // Packed once and read often from the host's memory, so decompression speed matters most.
      const args = [await realpath(from), draft, "-comp", "lz4", "-noappend", "-quiet", "-no-progress"];
      await runProgram("mksquashfs", args, { signal }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw diskFailure("A disk for virtual machines could not be created (mksquashfs)", error);
      });
    });
  }

  return {
    async pack(name, from, signal) {
      const path = join(directory, name + ending);
      if (existsSync(path)) return path;
      await lock.withLock(`packed ${name}`, signal, async () => {
        if (!existsSync(path)) await make(path, from, signal);
      });
      return path;
    },
    async keepOnly(images) {
      if (!existsSync(directory)) return;
      for (const name of await readdir(directory)) {
        const id = /^([a-z]+-[0-9a-f]{16})\.squashfs$/.exec(name)?.[1];
        // Packed code and node have names of another pattern.
        if (id !== undefined && !id.startsWith("code-") && !id.startsWith("node-") && !images.has(id))
          await rm(join(directory, name), { force: true });
      }
    },
  };
}

/** Writable disks and the enrollment disk of one guest. */
export type OwnDisks = Pick<GuestDiskPaths, "data" | "state" | "enrollment">;

/** Creates the missing disks; the data disk exists. The host never mounts the data disk, as only one system may. */
export async function openOwnDisks(paths: MachinePaths): Promise<OwnDisks> {
  const [state, enrollment] = [join(paths.directory, "state.img"), join(paths.directory, "enrollment.img")];
  await makeFile(state, stateBytes);
  await makeFile(enrollment, enrollmentBytes);
  // The data disk of a storage tier is in another directory.
  return { data: await realpath(paths.diskFile), state, enrollment };
}

/** Writes the enrollment in place, so that a running guest reads it as well. */
export async function writeEnrollmentDisk(
  paths: MachinePaths,
  machineId: string,
  enrollment: Enrollment,
): Promise<void> {
  const text = enrollmentText(machineId, enrollment);
  if (Buffer.byteLength(text) > enrollmentBytes)
    throw new ComputeFailure("There are too many controllers for the enrollment of a virtual machine.");
  const { enrollment: path } = await openOwnDisks(paths);
  const file = await open(path, "r+");
  try {
    // Trailing spaces are valid in a JSON document.
    await file.write(text.padEnd(enrollmentBytes), 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function makeFile(path: string, bytes: number): Promise<void> {
  // A killed process of an earlier release may have left an empty file.
  if (existsSync(path) && (await stat(path)).size > 0) return;
  await createAtomically(path, (draft) => createSparseFile(draft, bytes));
}
