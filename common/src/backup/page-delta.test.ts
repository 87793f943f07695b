import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { headerOf, tarOf, type Tree } from "@holdfast/testing/backup/tar.ts";
import { type DeltaStep, type PageLookup, readDelta, splitPages } from "./page-delta.ts";
import { digestBytes, readPageMap } from "./page-map.ts";

const pageBytes = 1_024;
const page = (fill: number, length = pageBytes) => Buffer.alloc(length, fill);
const tree = (files: Record<string, Buffer | null>): Tree => new Map(Object.entries(files));

async function* inChunks(bytes: Buffer, chunkBytes = 700): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function split(tar: Buffer, before?: PageLookup) {
  const { content, map } = splitPages(inChunks(tar), pageBytes, before);
  const [contentBytes, mapBytes] = await Promise.all([buffer(content), buffer(map)]);
  return { content: contentBytes, map: mapBytes };
}

async function lookupOf(map: Buffer): Promise<PageLookup> {
  const files = new Map<string, Buffer>();
  let last = "";
  for await (const step of readPageMap(inChunks(map), pageBytes)) {
    if (step.kind === "file") last = step.path;
    const known = files.get(last) ?? Buffer.alloc(0);
    files.set(last, step.kind === "file" ? known : Buffer.concat([known, step.bytes]));
  }
  return {
    async digests(path, first, count) {
      return files.get(path)?.subarray(first * digestBytes, (first + count) * digestBytes) ?? Buffer.alloc(0);
    },
  };
}

async function stepsOf(before: Tree, after: Tree): Promise<DeltaStep[]> {
  const lookup = await lookupOf((await split(tarOf(before))).map);
  const { content } = await split(tarOf(after), lookup);
  return Array.fromAsync(readDelta(inChunks(content)));
}

test("a full backup is the tar byte for byte, including bytes after its end", async () => {
  const files = tree({ PG_VERSION: Buffer.from("17\n"), base: null, "base/1": Buffer.concat([page(1), page(2, 10)]) });
  const tar = Buffer.concat([tarOf(files), Buffer.alloc(9_000)]);
  expect((await split(tar)).content.equals(tar)).toBe(true);
});

test("a full backup accepts links, an increment rejects them", async () => {
  const tar = Buffer.concat([headerOf("pg_tblspc/1", "2", 0), Buffer.alloc(1_024)]);
  const full = await split(tar);
  expect(full.content.equals(tar)).toBe(true);
  await expect(split(tar, await lookupOf(full.map))).rejects.toThrow("pg_tblspc/1 is neither a file nor a directory");
});

test("an increment contains the changed pages and only counts the others", async () => {
  const before = tree({ a: Buffer.concat([page(1), page(2), page(3), page(4, 100)]), deleted: page(1), same: page(7) });
  const after = tree({ a: Buffer.concat([page(1), page(9), page(3), page(4, 100)]), same: page(7), empty: page(0, 0) });
  const mode = 0o600;
  expect(await stepsOf(before, after)).toEqual([
    { kind: "file", path: "a", mode, size: 3_172 },
    { kind: "same", from: 0, to: 1_024 },
    { kind: "changed", from: 1_024, bytes: page(9) },
    { kind: "same", from: 2_048, to: 3_172 },
    { kind: "file", path: "same", mode, size: 1_024 },
    { kind: "same", from: 0, to: 1_024 },
    { kind: "file", path: "empty", mode, size: 0 },
  ]);
});

test.each<[string, number, DeltaStep]>([
  ["longer", 200, { kind: "changed", from: 1_024, bytes: page(2, 200) }],
  ["shorter", 50, { kind: "changed", from: 1_024, bytes: page(2, 50) }],
  ["the same", 100, { kind: "same", from: 0, to: 1_124 }],
])("a last page that is %s yields the matching step", async (_, length, step) => {
  const file = (last: number) => tree({ a: Buffer.concat([page(1), page(2, last)]) });
  expect((await stepsOf(file(100), file(length))).at(-1)).toEqual(step);
});

test("a map of another page size and a truncated or extended delta are rejected", async () => {
  const { map } = await split(tarOf(tree({ a: page(1) })));
  await expect(Array.fromAsync(readPageMap(inChunks(map), 2_048))).rejects.toThrow("pages of 1024 bytes, not 2048");
  const { content } = await split(tarOf(tree({ a: page(2) })), await lookupOf(map));
  await expect(Array.fromAsync(readDelta(inChunks(content.subarray(0, -1))))).rejects.toThrow("ends too early");
  const more = Buffer.concat([content, Buffer.of(0)]);
  await expect(Array.fromAsync(readDelta(inChunks(more)))).rejects.toThrow("bytes follow the end");
});

test.each(["../out", "/etc/passwd", "a/../../b"])("a path that leads out of the root is rejected: %s", async (name) => {
  const tar = Buffer.concat([headerOf(name, "0", 0), Buffer.alloc(1_024)]);
  await expect(split(tar)).rejects.toThrow("is not a path within the tar");
});
