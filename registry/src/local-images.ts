import { createReadStream } from "node:fs";
import { opendir, rename, rm, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { ObjectExists, type ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { ImageStorage } from "./image-storage.ts";

export interface LocalImagesDeps {
  /** Directory of the images of an earlier release, on the disk of the registry. */
  readonly from: string;
  readonly storage: Pick<ImageStorage, "objects" | "directory">;
  /** Runs a program as the user of docker-registry, which sees only these directories. */
  readonly runAsUser: (argv: readonly string[], directories: readonly string[]) => Promise<void>;
  readonly log: Log;
}

const concurrentUploads = 16;
/** Largest object that S3 accepts in one request. */
const maxObjectBytes = 5 * 1024 ** 3;
/** Copies what is absent in the new directory; no file has its name before it is complete. */
const copyScript = `set -eu
rm -rf "$2/.moving"
cp -a "$1/docker" "$2/.moving"
mkdir -p "$2/docker"
cp -a --no-clobber --link "$2/.moving/." "$2/docker/"
sync -f "$2"
rm -rf "$2/.moving" "$1/docker"
`;

/**
 * Moves the images that an earlier release stored on the disk of the registry into the object store, before
 * docker-registry starts. What the store already has is newer, and remains. A move that a crash interrupted is
 * completed by the next start.
 */
export async function moveLocalImages({ from, storage, runAsUser, log }: LocalImagesDeps): Promise<void> {
  const docker = join(from, "docker");
  if (!(await exists(docker))) return;
  log.info("moving images to the object store", { from });
  if (storage.directory !== undefined) await moveDirectory(from, storage.directory, runAsUser);
  else {
    // Links after the layers that they name, so that no image is incomplete.
    const tooLarge: string[] = [];
    for (const part of ["blobs", "repositories"])
      tooLarge.push(...(await upload(from, join(docker, "registry", "v2", part), storage.objects)));
    if (tooLarge.length > 0) return log.error("layers are too large for the object store", { tooLarge });
    await rm(docker, { recursive: true, force: true });
  }
  log.info("images moved to the object store", {});
}

async function moveDirectory(from: string, to: string, runAsUser: LocalImagesDeps["runAsUser"]): Promise<void> {
  try {
    await rename(join(from, "docker"), join(to, "docker"));
  } catch (error) {
    // Another file system, or images that the directory already has.
    if (!["EXDEV", "ENOTEMPTY", "EEXIST"].some((code) => hasCode(error, code))) throw error;
    await runAsUser(["sh", "-c", copyScript, "copy", from, to], [from, to]);
  }
}

/** Uploads the files below a directory and deletes them. Resolves with those that no request can upload. */
async function upload(root: string, directory: string, objects: ObjectStore): Promise<string[]> {
  const tooLarge: string[] = [];
  const put = async (path: string) => {
    if ((await stat(path)).size > maxObjectBytes) {
      tooLarge.push(path);
      return;
    }
    try {
      await objects.put(relative(root, path), createReadStream(path), { ifAbsent: true });
    } catch (error) {
      if (!(error instanceof ObjectExists)) throw error;
    }
    await rm(path);
  };
  let batch: string[] = [];
  for await (const path of filesBelow(directory)) {
    batch.push(path);
    if (batch.length < concurrentUploads) continue;
    await Promise.all(batch.map(put));
    batch = [];
  }
  await Promise.all(batch.map(put));
  return tooLarge;
}

/** Regular files; no symbolic link is followed. Unfinished uploads cannot continue in another storage. */
async function* filesBelow(directory: string): AsyncGenerator<string> {
  if (!(await exists(directory))) return;
  for await (const entry of await opendir(directory)) {
    const path = join(directory, entry.name);
    if (entry.isDirectory() && entry.name !== "_uploads") yield* filesBelow(path);
    else if (entry.isFile()) yield path;
  }
}

async function exists(directory: string): Promise<boolean> {
  try {
    await (await opendir(directory)).close();
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}
