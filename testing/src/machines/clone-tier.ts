import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDisk } from "@holdfast/compute/local/data-disk.ts";
import { detectAbilities, type HostAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { guardDirectory } from "../platform/directory-guard.ts";

const run = promisify(execFile);

/** A separate file system whose files can be cloned, for a storage tier with snapshots on any host. */
export interface CloneTier {
  /** Mount point. */
  readonly directory: string;
  /** Data disks that remain in the file system. */
  disks(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Size of the sparse file: it has to exceed the host's reserve. */
const tierBytes = 32 * 1024 ** 3;

/** Reason why no such file system can be created here; undefined if one can. */
export async function cloneTierMissing(abilities?: HostAbilities): Promise<string | undefined> {
  const { isolation, loop } = abilities ?? (await detectAbilities());
  return isolation === "root" && loop ? undefined : "only root can mount a file system that has reflinks";
}

/** Mounts an xfs on a file. */
export async function openCloneTier(): Promise<CloneTier> {
  const home = await mkdtemp(join(tmpdir(), "holdfast-clones-"));
  const guard = guardDirectory(home);
  const [diskFile, directory] = [join(home, "disk.img"), join(home, "mounted")];
  const imageRoot = findImage(imagesDirectory(process.env), "trixie")?.root;
  await createDisk(
    { diskFile, dataDirectory: directory },
    { kind: "loop", diskBytes: tierBytes, uid: null, imageRoot, tierDirectory: undefined },
  );
  await mkdir(directory);
  await run("mount", ["-t", "xfs", "-o", "loop", diskFile, directory]);
  return {
    directory,
    disks: () => readdir(join(directory, "holdfast")).catch(() => []),
    close: () => guard.end(),
  };
}
