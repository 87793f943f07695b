import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDirectoryStore } from "./directory-store.ts";
import { ObjectExists, type ObjectStore } from "./object-store.ts";

let directory: string;
let objects: ObjectStore;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-objects-"));
  objects = createDirectoryStore(directory);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function* stream(...chunks: string[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function read(key: string, range?: { start: number; end: number }): Promise<string | undefined> {
  const found = await objects.get(key, range);
  return found && (await buffer(found)).toString();
}

test("an object is read completely or by range, and replaced atomically", async () => {
  const facts = await objects.put("a/b/one", stream("hello ", "world"));
  expect(facts).toMatchObject({ key: "a/b/one", sizeBytes: 11 });
  expect(await objects.head("a/b/one")).toEqual(facts);
  expect(await read("a/b/one")).toBe("hello world");
  expect(await read("a/b/one", { start: 6, end: 9 })).toBe("wor");
  expect(await read("a/b/one", { start: 3, end: 3 })).toBe("");
  await objects.put("a/b/one", stream("x"));
  expect(await read("a/b/one")).toBe("x");
});

test("an absent object is undefined, and deleting it succeeds", async () => {
  expect(await read("none")).toBeUndefined();
  expect(await objects.head("a/b")).toBeUndefined();
  expect(await objects.head("a/b/one/two")).toBeUndefined();
  await objects.delete("none");
});

test("exactly one of twenty writers of an absent object succeeds", async () => {
  const writes = Array.from({ length: 20 }, (_, i) => objects.put("once", stream(`writer ${i}`), { ifAbsent: true }));
  const results = await Promise.allSettled(writes);
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  for (const result of results) if (result.status === "rejected") expect(result.reason).toBeInstanceOf(ObjectExists);
});

test("a failed stream leaves neither an object nor a file", async () => {
  async function* broken() {
    yield Buffer.from("half");
    throw new Error("broken");
  }
  await expect(objects.put("half", broken())).rejects.toThrow("broken");
  await expect(objects.put("half", stream("x"), { signal: AbortSignal.abort() })).rejects.toThrow("aborted");
  expect(await objects.head("half")).toBeUndefined();
  expect(await readdir(join(directory, ".unfinished"))).toEqual([]);
});

test("lists are in key order, by prefix and in pages", async () => {
  const keys = ["l/a", "l/a-b", "l/a/1", "l/a/2", "l/b.c", "l/b/1", "lx/1"].toSorted();
  // A key cannot be the directory of another key as well, so that one is skipped.
  const written = keys.filter((key) => key !== "l/a");
  for (const key of written.toReversed()) await objects.put(key, stream("x"));
  const all = await objects.list("l", { limit: 100 });
  expect(all.objects.map(({ key }) => key)).toEqual(written);
  const paged: string[] = [];
  for (let more = true; more; ) {
    const after = paged.at(-1);
    const page = await objects.list("l/", { limit: 2, ...(after !== undefined && { after }) });
    paged.push(...page.objects.map(({ key }) => key));
    more = page.more;
  }
  expect(paged).toEqual(written.filter((key) => key.startsWith("l/")));
});

test.each(["", "/a", "a/", "a//b", "../a", "a/..", ".unfinished/x", "a b", "ä"])(
  "%j is not a valid key",
  async (key) => {
    await expect(objects.put(key, stream("x"))).rejects.toThrow("not a key");
  },
);
