import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { readDelta, splitPages } from "@holdfast/common/backup/page-delta.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createRandom, type Random } from "@holdfast/testing/random.ts";
import { tarOf, type Tree } from "@holdfast/testing/backup/tar.ts";
import { patchFiles } from "../os/patch-files.ts";
import { spoolPages } from "./page-spool.ts";

const pageBytes = 64;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-increments-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function* one(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

async function take(tree: Tree, since?: Buffer): Promise<{ content: Buffer; map: Buffer }> {
  const before = since && (await spoolPages(directory, one(since), pageBytes));
  const { content, map } = splitPages(one(tarOf(tree)), pageBytes, before);
  const [contentBytes, mapBytes] = await Promise.all([buffer(content), buffer(map)]);
  await before?.close();
  return { content: contentBytes, map: mapBytes };
}

async function unpack(root: string, tree: Tree): Promise<void> {
  await mkdir(root);
  for (const [path, content] of tree) {
    if (content === null) await mkdir(join(root, path), { recursive: true });
    else {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content, { mode: 0o600 });
    }
  }
}

async function filesBelow(root: string): Promise<Record<string, string | null>> {
  const found: Record<string, string | null> = {};
  for (const entry of await readdir(root, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    found[path.slice(root.length + 1)] = entry.isDirectory() ? null : (await readFile(path)).toString("hex");
  }
  return found;
}

const hexOf = (tree: Tree) =>
  Object.fromEntries([...tree].map(([path, content]) => [path, content === null ? null : content.toString("hex")]));

/** Changes to data between two backups. */
type Change =
  | { readonly kind: "write"; readonly file: number; readonly page: number; readonly fill: number }
  | { readonly kind: "size" | "drop" | "new"; readonly file: number; readonly size: number; readonly fill: number };

function changeOf(random: Random): Change {
  const [file, size, fill] = [random.between(0, 7), random.between(0, 6 * pageBytes), random.between(0, 3)];
  const kind = random.pick(["write", "write", "size", "drop", "new"] as const);
  return kind === "write" ? { kind, file, page: random.between(0, 5), fill } : { kind, file, size, fill };
}

/** Relations of three databases; a database without one is dropped. */
function changed(before: Tree, changes: readonly Change[]): Tree {
  const files = new Map([...before].flatMap(([path, content]) => (content === null ? [] : [[path, content] as const])));
  for (const each of changes) {
    const path = `base/${each.file % 3}/${each.file}`;
    const content = files.get(path);
    if (each.kind === "drop") files.delete(path);
    else if (each.kind === "new") files.set(path, Buffer.alloc(each.size, each.fill));
    else if (each.kind === "size" && content !== undefined)
      files.set(path, Buffer.concat([content, Buffer.alloc(each.size)]).subarray(0, each.size));
    else if (each.kind === "write" && content !== undefined) {
      const end = (each.page + 1) * pageBytes;
      files.set(
        path,
        Buffer.from(content).fill(each.fill, Math.min(end - pageBytes, content.length), Math.min(end, content.length)),
      );
    }
  }
  const paths = [...files.keys()];
  const directories = new Set(paths.flatMap((path) => ["base", dirname(path)]));
  // An engine's files come in a different order each time.
  const shuffled = paths.toSorted((a, b) => Number(a.at(-1)) * changes.length - Number(b.at(-1)) * changes.length);
  return new Map<string, Buffer | null>([
    ...[...directories].map((path) => [path, null] as const),
    ...shuffled.map((path) => [path, files.get(path) ?? null] as const),
  ]);
}

test("a full backup and its increments restore the files of the last one after any changes between", async () => {
  const root = join(directory, "data");
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = createRandom(seed);
    await rm(root, { recursive: true, force: true });
    let tree = changed(
      new Map(),
      [0, 1, 2, 3, 4].map((at) => ({ kind: "new", file: at, size: at * 70, fill: at })),
    );
    let { map } = await take(tree);
    await unpack(root, tree);
    for (let increments = random.between(1, 5); increments > 0; increments -= 1) {
      tree = changed(
        tree,
        Array.from({ length: random.between(0, 12) }, () => changeOf(random)),
      );
      const increment = await take(tree, map);
      await patchFiles(root, readDelta(one(increment.content)));
      expect(await filesBelow(root), `seed ${seed}`).toEqual(hexOf(tree));
      ({ map } = increment);
    }
  }
});

test("an increment is not applied to files other than its base's", async () => {
  const root = join(directory, "data");
  const before = changed(new Map(), [{ kind: "new", file: 1, size: 300, fill: 1 }]);
  const { map } = await take(before);
  const { content } = await take(before, map);
  await unpack(root, changed(new Map(), [{ kind: "new", file: 1, size: 100, fill: 1 }]));
  const patched = patchFiles(root, readDelta(one(content)));
  await expect(patched).rejects.toThrow(BackupDamaged);
  await expect(patched).rejects.toThrow("has 100 bytes, and 300 are to stay");
});

test("the map of the base leaves nothing on the disk while it is used", async () => {
  const { map } = await take(changed(new Map(), [{ kind: "new", file: 1, size: 300, fill: 1 }]));
  const spool = await spoolPages(directory, one(map), pageBytes);
  expect(await readdir(directory)).toEqual([]);
  expect((await spool.digests("base/1/1", 4, 10)).length).toBe(16);
  expect((await spool.digests("base/1/1", 5, 1)).length).toBe(0);
  expect((await spool.digests("base/1/2", 0, 1)).length).toBe(0);
  await spool.close();
});
