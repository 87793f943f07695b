import { createHash } from "node:crypto";
import { access, mkdir, mkdtemp, readdir, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { fileOf, indexOf, type Package } from "./package-set.ts";
import type { PackageSource, ResolvedPackage } from "./package-source.ts";

/** Archive of the packages of images, each a file named by its SHA-256: `<imagesDir>/packages/<hash>.deb`. */
export interface PackageArchive {
  readonly directory: string;
  /** The packages without a file in the archive. */
  missing<P extends Package>(packages: readonly P[]): Promise<P[]>;
  /** Fetches the missing packages; each file appears complete or not at all. */
  add(packages: readonly ResolvedPackage[], source: PackageSource, signal?: AbortSignal): Promise<void>;
  /** Writes an apt repository of exactly these packages; returns its line for sources.list. Needs no network. */
  writeRepository(packages: readonly Package[], suite: string, directory: string): Promise<string>;
  /** Unpacks the packages over one another into the directory, without installing them. */
  unpack(packages: readonly Package[], directory: string, signal?: AbortSignal): Promise<void>;
}

export function openPackageArchive(imagesDir: string): PackageArchive {
  const directory = join(imagesDir, "packages");
  const pathOf = ({ sha256 }: Package) => join(directory, fileOf(sha256));

  async function missing<P extends Package>(packages: readonly P[]): Promise<P[]> {
    const absent = await Promise.all(
      packages.map((each) =>
        access(pathOf(each)).then(
          () => false,
          () => true,
        ),
      ),
    );
    return packages.filter((_, index) => absent[index]);
  }

  async function requireAll(packages: readonly Package[]): Promise<void> {
    const [lost] = await missing(packages);
    if (lost !== undefined)
      throw new ImageImpossible(`the archive has no ${lost.name} ${lost.version} (${fileOf(lost.sha256)})`);
  }

  return {
    directory,
    missing,
    async add(packages, source, signal) {
      await mkdir(directory, { recursive: true });
      // Updates the files' times, so that no sweep removes them.
      const now = new Date();
      await Promise.all(packages.map((each) => utimes(pathOf(each), now, now).catch(() => undefined)));
      const toFetch = await missing(packages);
      if (toFetch.length === 0) return;
      const fetching = await mkdtemp(join(directory, "fetching-"));
      try {
        const files = toFetch.map(({ uri, sha256 }) => ({ uri, sha256, path: join(fetching, fileOf(sha256)) }));
        await source.fetch(files, signal);
        for (const name of await readdir(fetching)) await rename(join(fetching, name), join(directory, name));
      } finally {
        await rm(fetching, { recursive: true, force: true });
      }
    },
    async unpack(packages, target, signal) {
      await requireAll(packages);
      for (const each of packages)
        await runProgram("dpkg-deb", ["--extract", pathOf(each), target], { ...(signal && { signal }) });
    },
    async writeRepository(packages, suite, repository) {
      await requireAll(packages);
      await mkdir(repository, { recursive: true });
      for (const each of packages) await symlink(pathOf(each), join(repository, fileOf(each.sha256)));
      const index = indexOf(packages);
      await writeFile(join(repository, "Packages"), index);
      const hash = createHash("sha256").update(index).digest("hex");
      const release = [
        `Suite: ${suite}`,
        `Codename: ${suite}`,
        // apt requires a date; a constant one keeps apt's caches equal.
        "Date: Sat, 01 Jan 2000 00:00:00 UTC",
        "SHA256:",
        ` ${hash} ${Buffer.byteLength(index)} Packages`,
        "",
      ];
      await writeFile(join(repository, "Release"), release.join("\n"));
      // apt still verifies each file's hash by the index.
      return `deb [trusted=yes] copy:${repository} ./`;
    },
  };
}
