import { expect, test } from "vitest";
import { BatchCache } from "./batch-cache.ts";

test("a text is parsed once for each setting of QUOTED_IDENTIFIER", () => {
  const cache = new BatchCache();
  const first = cache.parse('SELECT "a"', true);
  expect(cache.parse('SELECT "a"', true)).toBe(first);
  expect(cache.parse('SELECT "a"', false)).not.toEqual(first);
  expect([cache.hits, cache.lookups]).toEqual([1, 3]);
});

test("an error is thrown each time", () => {
  const cache = new BatchCache();
  for (let time = 0; time < 2; time += 1) expect(() => cache.parse("SELECT FROM", true)).toThrow("FROM");
  expect([cache.hits, cache.lookups]).toEqual([0, 2]);
});

test("the texts that were used last stay, and long ones are not cached", () => {
  const cache = new BatchCache();
  const text = (name: string, length = 50_000) => `SELECT '${name}${"x".repeat(length)}'`;
  cache.parse(text("kept"), true);
  for (let index = 0; index < 100; index += 1) {
    cache.parse(text(`a${index}`), true);
    cache.parse(text("kept"), true);
  }
  expect(cache.hits).toBe(100);
  cache.parse(text("a99"), true);
  expect(cache.hits).toBe(101);
  cache.parse(text("a0"), true);
  for (let time = 0; time < 2; time += 1) cache.parse(text("long", 70_000), true);
  expect(cache.hits).toBe(101);
});
