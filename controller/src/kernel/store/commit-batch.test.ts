import { expect, test } from "vitest";
import { batchLength } from "./commit-batch.ts";
import type { Transaction } from "./store.ts";

function change(key: string, condition = key): Transaction {
  return { conditions: [{ key: condition, modRevision: 1n }], puts: [{ key, value: "x" }], deletes: [] };
}

const many = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const large: Transaction = { conditions: [], puts: [], deletes: many(100, "/large/") };
const heavy: Transaction = { conditions: [], puts: [{ key: "/heavy", value: "x".repeat(300_000) }], deletes: [] };

// biome-ignore format: a table
test.each<[why: string, transactions: Transaction[], length: number]>([
  ["what has nothing in common travels together",       [change("/a"), change("/b"), change("/c")],         3],
  ["a key that is changed twice does not",              [change("/a"), change("/b"), change("/a")],         2],
  ["nor a change of what one before has compared",      [change("/a", "/b"), change("/b")],                 1],
  ["nor a comparison of what one before changes",       [change("/a"), change("/b", "/a")],                 1],
  ["nor what is deleted besides",                       [{ ...change("/a"), deletes: ["/b"] }, change("/b")], 1],
  ["two may compare the same",                          [change("/a", "/o"), change("/b", "/o")],           2],
  ["a large one waits",                                 [change("/a"), large, change("/b")],                1],
  ["and goes alone",                                    [large, change("/b")],                              1],
  ["so does one with much text",                        [heavy, change("/b")],                              1],
  ["there is an end to it",                             many(200, "/k").map((key) => change(key)),          64],
])("%s", (_, transactions, length) => {
  expect(batchLength(transactions)).toBe(length);
});
