import { existsSync } from "node:fs";
import { mkdir, open, readdir, realpath, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { Enrollment } from "../compute-provider.ts";
import { makeWhole, removeDrafts } from "../local/atomic-file.ts";
import { diskFailure, makeSparse } from "../local/data-disk.ts";
import { enrollmentText } from "../local/enrollment-file.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import type { GuestDiskPaths } from "./virtual-machine-config.ts";

/** What the agent keeps: journal, keys, logs, and a day of samples. Sparse. */
const stateBytes = 1024 ** 3;
/** A page, and more than an enrollment with many controllers. */
const enrollmentBytes = 4_096;
const ending = ".squashfs";

/** Directories of the host as read-only disks for guests, each packed once. */
export interface PackedDirectories {
  /** Path of the disk with what is in the directory, made first (seconds). What has a name never changes. */
  pack(name: string, directory: string, signal: AbortSignal): Promise<string>;
  /** Removes disks of node images that are not among these. Guests that have one open go on. */
  keepOnly(images: ReadonlySet<string>): Promise<void>;
}

export function createPackedDirectories(directory: string, lock: DirectoryLock): PackedDirectories {
  async function make(path: string, from: string, signal: AbortSignal): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await removeDrafts(path);
    // The draft of an earlier version.
    await rm(`${path}.partial`, { force: true });
    await makeWhole(path, async (draft) => {
      // Read far more often than made, from the host's memory: what unpacks fastest is best.
      const args = [await realpath(from), draft, "-comp", "lz4", "-noappend", "-quiet", "-no-progress"];
      await runProgram("mksquashfs", args, { signal }).catch((error: unknown) => {
        signal.throwIfAborted();
        throw diskFailure("A disk for virtual machines could not be made (mksquashfs)", error);
      });
    });
  }

  return {
    async pack(name, from, signal) {
      const path = join(directory, name + ending);
      if (existsSync(path)) return path;
      await lock.hold(`packed ${name}`, signal, async () => {
        if (!existsSync(path)) await make(path, from, signal);
      });
      return path;
    },
    async keepOnly(images) {
      if (!existsSync(directory)) return;
      for (const name of await readdir(directory)) {
        const id = /^([a-z]+-[0-9a-f]{16})\.squashfs$/.exec(name)?.[1];
        // Packed code and node have names of another form.
        if (id !== undefined && !id.startsWith("code-") && !id.startsWith("node-") && !images.has(id))
          await rm(join(directory, name), { force: true });
      }
    },
  };
}

/** The disks of a guest that are its own. */
export type OwnDisks = Pick<GuestDiskPaths, "data" | "state" | "enrollment">;

/** Makes those that are missing; the data disk is there. No two may ever have a data disk mounted: the host does not. */
export async function openOwnDisks(paths: MachinePaths): Promise<OwnDisks> {
  const [state, enrollment] = [join(paths.directory, "state.img"), join(paths.directory, "enrollment.img")];
  await makeFile(state, stateBytes);
  await makeFile(enrollment, enrollmentBytes);
  // The data disk of a storage tier lies elsewhere.
  return { data: await realpath(paths.diskFile), state, enrollment };
}

/** Writes what it enrolls with over what was there, so that a guest that runs reads it as well. */
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
    // Space at the end of a document in JSON is nothing.
    await file.write(text.padEnd(enrollmentBytes), 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function makeFile(path: string, bytes: number): Promise<void> {
  // An earlier version that was killed may have left an empty one.
  if (existsSync(path) && (await stat(path)).size > 0) return;
  await makeWhole(path, (draft) => makeSparse(draft, bytes));
}
