import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ImageManifest, manifestPath } from "@holdfast/image/image-manifest.ts";
import { cacheDirectory, findImage, imagesDirectory, newestPath, setNewest } from "@holdfast/image/node-image.ts";

/** A separate cache; a test chooses its newest image with PostgreSQL 17. */
export interface ChangingImages {
  /** Directory for HOLDFAST_CACHE. */
  readonly cache: string;
  /** Id of the image that is the newest at first; with `looksOlder` its manifest names older versions than it has. */
  readonly first: string;
  /** Id of an image with the same programs and a correct manifest. */
  readonly valid: string;
  /** Id of an image that is equal to `valid`. */
  readonly equal: string;
  /** Id of an image without the programs of its engines; its manifest names an ICU that it does not have. */
  readonly broken: string;
  /**
   * Id of an image whose engines start, run for four seconds, exit and leave damaged data; from then on they do not
   * start. Its manifest names newer versions than the engines have, so the expected version never appears.
   */
  readonly damaging: string;
  /** Removes this image from the cache, as on a host that never had it. */
  hide(id: string): void;
  /** Restores an image that was hidden. */
  restore(id: string): void;
  /** Makes this image the default. */
  choose(id: string): Promise<void>;
  close(): void;
}

/** Files are links to those of the real image: a new image takes half a second. Throws without one. */
export function createChangingImages({ looksOlder }: { readonly looksOlder: boolean }): ChangingImages {
  const real = findImage(imagesDirectory(process.env), "trixie");
  const manifest = real && readManifest(imagesDirectory(process.env), real.id);
  if (real === undefined || manifest === undefined) throw new Error("no image: run ./bin/holdfast.js images make");
  const source = real;
  // Hard links need one file system.
  const cache = mkdtempSync(join(cacheDirectory(process.env), "changing-images-"));
  const imagesDir = imagesDirectory({ HOLDFAST_CACHE: cache });
  mkdirSync(dirname(newestPath(imagesDir, "trixie")), { recursive: true });

  function add(id: string, change: (manifest: ImageManifest) => ImageManifest = (same) => same): string {
    writeFileSync(manifestPath(imagesDir, id), JSON.stringify(change({ ...manifest, id } as ImageManifest)));
    return join(imagesDir, id);
  }
  /**
   * Adds a complete copy of the image, since a machine may have no other files. Its files are hard links, and so must
   * not be written to.
   */
  function addCopy(id: string, change: (manifest: ImageManifest) => ImageManifest): string {
    const root = add(id, change);
    execFileSync("cp", ["--archive", "--link", source.root, root]);
    rmSync(join(root, "etc"), { recursive: true });
    cpSync(join(source.root, "etc"), join(root, "etc"), { recursive: true, verbatimSymlinks: true });
    return root;
  }

  const ids = ["a", "b", "c", "d", "e"].map((digit) => `trixie-${digit.repeat(16)}`);
  const [first = "", valid = "", broken = "", equal = "", damaging = ""] = ids;
  symlinkSync(real.root, looksOlder ? add(first, olderEngines) : add(first));
  for (const id of [valid, equal]) symlinkSync(real.root, add(id));
  const root = addCopy(broken, otherIcu);
  for (const program of ["usr/lib/postgresql/17/bin/postgres", "usr/bin/valkey-server"]) rmSync(join(root, program));
  const damaged = addCopy(damaging, newerEngines);
  damage(join(damaged, "usr/lib/postgresql/17/bin/postgres"), "-D", {
    files: "base/*/1[6-9]*",
    ready: "grep -q ready postmaster.pid 2>/dev/null",
  });
  damage(join(damaged, "usr/bin/valkey-server"), "*.conf", {
    files: "appendonlydir/*",
    ready: "[ -e appendonlydir ]",
  });
  writeFileSync(newestPath(imagesDir, "trixie"), first);
  const hidden = join(cache, "hidden");
  mkdirSync(hidden);
  function move(id: string, from: string, to: string): void {
    for (const name of [id, `${id}.json`]) renameSync(join(from, name), join(to, name));
  }
  return {
    cache,
    hide: (id) => move(id, imagesDir, hidden),
    restore: (id) => move(id, hidden, imagesDir),
    first,
    valid,
    equal,
    broken,
    damaging,
    choose: (id) => setNewest(imagesDir, "trixie", id),
    close: () => rmSync(cache, { recursive: true, force: true }),
  };
}

function readManifest(imagesDir: string, id: string): ImageManifest {
  return JSON.parse(readFileSync(manifestPath(imagesDir, id), "utf8"));
}

function olderEngines(manifest: ImageManifest): ImageManifest {
  return withVersion(withVersion(manifest, /^postgresql-17$/, "17.0-1"), /^etcd-server$/, "3.5.0-1");
}

function newerEngines(manifest: ImageManifest): ImageManifest {
  return withVersion(withVersion(manifest, /^postgresql-17$/, "17.99-1"), /^valkey-server$/, "8.1.99-1");
}

/** `start`: pattern of the first argument with which the program serves data; `files`: the files that it damages. */
function damage(program: string, start: string, { files, ready }: { files: string; ready: string }): void {
  renameSync(program, `${program}.sound`);
  const script = [
    "#!/bin/sh",
    `case "$1" in ${start}) ;; *) exec "$0.sound" "$@" ;; esac`,
    "if [ ! -e damaged ]; then",
    '  "$0.sound" "$@" &',
    `  until ${ready} || ! kill -0 $!; do sleep 0.1; done`,
    "  sleep 4",
    "  kill -9 $!",
    "  wait",
    `  for file in ${files}; do printf damaged >"$file"; done`,
    "  : >damaged",
    "fi",
    'echo "FATAL: this image damages data" >&2',
    "exit 1",
  ];
  writeFileSync(program, `${script.join("\n")}\n`, { mode: 0o755 });
}

function otherIcu(manifest: ImageManifest): ImageManifest {
  return withVersion(manifest, /^libicu\d+$/, "99.1-1");
}

function withVersion(manifest: ImageManifest, name: RegExp, version: string): ImageManifest {
  const packages = manifest.packages.map((each) => (name.test(each.name) ? { ...each, version } : each));
  return { ...manifest, packages };
}
