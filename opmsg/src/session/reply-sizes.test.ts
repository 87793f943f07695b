import { serialize, type Document } from "bson";
import { expect, test } from "vitest";
import { fieldsOf } from "../protocol/fields.ts";
import { replyBytesMax } from "./memory.ts";
import { createReplySizes } from "./reply-sizes.ts";

const requestOf = (document: Document) => {
  const fields = fieldsOf(Buffer.from(serialize(document)));
  return { command: fields[0]?.name ?? "", fields };
};
const find = { find: "c", filter: { _id: 1 }, $db: "d" };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["of another value",        { ...find, filter: { _id: 2 } },                true],
  ["of another condition",    { ...find, filter: { name: "one" } },           false],
  ["of another collection",   { ...find, find: "e" },                         false],
  ["of another database",     { ...find, $db: "e" },                          false],
  ["of more documents",       { ...find, limit: 10 },                         false],
  ["of fewer fields",         { ...find, projection: { _id: 1 } },            false],
  ["by a pipeline",           { aggregate: "c", pipeline: [{ $match: {} }] }, false],
])("a read %s has the size of an earlier one, if its form is the same", (_, document, isKnown) => {
  const sizes = createReplySizes(10);
  expect(sizes.expected(requestOf(find))).toBe(replyBytesMax);
  sizes.seen(requestOf(find), 1_000);
  expect(sizes.expected(requestOf(document))).toBe(isKnown ? 2_000 : replyBytesMax);
});

test("the largest reply counts, at most the maximum", () => {
  const sizes = createReplySizes(10);
  const pages = requestOf({ getMore: 1, collection: "c", $db: "d" });
  for (const size of [10, 5_000, 20]) sizes.seen(pages, size);
  expect(sizes.expected(pages)).toBe(10_000);
  sizes.seen(pages, replyBytesMax);
  expect(sizes.expected(pages)).toBe(replyBytesMax);
});

test("limits of documents differ", () => {
  const sizes = createReplySizes(10);
  sizes.seen(requestOf({ ...find, limit: 1 }), 1_000);
  expect(sizes.expected(requestOf({ ...find, limit: 2 }))).toBe(replyBytesMax);
});

test("commands whose replies have no documents of users count nothing", () => {
  const sizes = createReplySizes(10);
  for (const name of ["insert", "update", "delete", "ping", "constructor"])
    expect(sizes.expected(requestOf({ [name]: "c" }))).toBe(0);
});

test("the form that was read longest ago is forgotten, also of hostile names", () => {
  const sizes = createReplySizes(2);
  const named = (name: string) => requestOf({ find: "c", filter: { [name]: 1 } });
  for (const name of ["__proto__", "a", "b"]) sizes.seen(named(name), 1_000);
  expect(["__proto__", "a", "b"].map((name) => sizes.expected(named(name)))).toEqual([replyBytesMax, 2_000, 2_000]);
});
