import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ImageManifest, manifestPath } from "@holdfast/image/image-manifest.ts";
import { cacheDirectory, findImage, imagesDirectory, newestPath, setNewest } from "@holdfast/image/node-image.ts";

/** A cache of a test's own, whose newest image with PostgreSQL 17 a test chooses. */
export interface ChangingImages {
  /** For HOLDFAST_CACHE. */
  readonly cache: string;
  /** What is the newest first; unless that is not wanted, its manifest tells of an older PostgreSQL than it has. */
  readonly first: string;
  /** The same programs; its manifest tells the truth. */
  readonly good: string;
  /** As good as that one. */
  readonly equal: string;
  /** The same without the programs of its engines; its manifest tells of another ICU than it has. */
  readonly broken: string;
  /** From now on whatever is made without a choice has this one. */
  choose(id: string): Promise<void>;
  close(): void;
}

/** Files are those of the real image, by links: what is made here takes half a second. Throws without one. */
export function createChangingImages({ looksOlder }: { readonly looksOlder: boolean }): ChangingImages {
  const real = findImage(imagesDirectory(process.env), "trixie");
  const manifest = real && readManifest(imagesDirectory(process.env), real.id);
  if (real === undefined || manifest === undefined) throw new Error("no image: run ./bin/holdfast.js images make");
  // Links lead to files of one file system only.
  const cache = mkdtempSync(join(cacheDirectory(process.env), "changing-images-"));
  const imagesDir = imagesDirectory({ HOLDFAST_CACHE: cache });
  mkdirSync(dirname(newestPath(imagesDir, "trixie")), { recursive: true });

  function add(id: string, change: (manifest: ImageManifest) => ImageManifest = (same) => same): string {
    writeFileSync(manifestPath(imagesDir, id), JSON.stringify(change({ ...manifest, id } as ImageManifest)));
    return join(imagesDir, id);
  }
  const ids = ["a", "b", "c", "d"].map((digit) => `trixie-${digit.repeat(16)}`);
  const [first = "", good = "", broken = "", equal = ""] = ids;
  symlinkSync(real.root, looksOlder ? add(first, olderPostgresql) : add(first));
  for (const id of [good, equal]) symlinkSync(real.root, add(id));
  const root = add(broken, otherIcu);
  // Whole, or its machine would not start where the image is all that a machine has; what is linked must not be written to.
  execFileSync("cp", ["--archive", "--link", real.root, root]);
  rmSync(join(root, "etc"), { recursive: true });
  cpSync(join(real.root, "etc"), join(root, "etc"), { recursive: true, verbatimSymlinks: true });
  for (const program of ["usr/lib/postgresql/17/bin/postgres", "usr/bin/valkey-server"]) rmSync(join(root, program));
  writeFileSync(newestPath(imagesDir, "trixie"), first);
  return {
    cache,
    first,
    good,
    equal,
    broken,
    choose: (id) => setNewest(imagesDir, "trixie", id),
    close: () => rmSync(cache, { recursive: true, force: true }),
  };
}

function readManifest(imagesDir: string, id: string): ImageManifest {
  return JSON.parse(readFileSync(manifestPath(imagesDir, id), "utf8"));
}

function olderPostgresql(manifest: ImageManifest): ImageManifest {
  return withVersion(manifest, /^postgresql-17$/, "17.0-1");
}

function otherIcu(manifest: ImageManifest): ImageManifest {
  return withVersion(manifest, /^libicu\d+$/, "99.1-1");
}

function withVersion(manifest: ImageManifest, name: RegExp, version: string): ImageManifest {
  const packages = manifest.packages.map((each) => (name.test(each.name) ? { ...each, version } : each));
  return { ...manifest, packages };
}
