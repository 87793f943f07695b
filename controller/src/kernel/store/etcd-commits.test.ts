import { expect, test } from "vitest";
import { batchLength } from "./etcd-commits.ts";
import type { Transaction } from "./store.ts";

function change(key: string, condition = key): Transaction {
  return { conditions: [{ key: condition, modRevision: 1n }], puts: [{ key, value: "x" }], deletes: [] };
}

const many = (count: number, prefix: string) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const large: Transaction = { conditions: [], puts: [], deletes: many(100, "/large/") };
const heavy: Transaction = { conditions: [], puts: [{ key: "/heavy", value: "x".repeat(300_000) }], deletes: [] };

// biome-ignore format: a table
test.each<[why: string, transactions: Transaction[], length: number]>([
  ["unrelated transactions share a call",               [change("/a"), change("/b"), change("/c")],         3],
  ["two changes of a key do not",                       [change("/a"), change("/b"), change("/a")],         2],
  ["nor a condition, then a change of its key",         [change("/a", "/b"), change("/b")],                 1],
  ["nor a change, then a condition on its key",         [change("/a"), change("/b", "/a")],                 1],
  ["nor a deletion, then a change of its key",          [{ ...change("/a"), deletes: ["/b"] }, change("/b")], 1],
  ["two with conditions on one key do",                 [change("/a", "/o"), change("/b", "/o")],           2],
  ["a large transaction is not added",                  [change("/a"), large, change("/b")],                1],
  ["and is sent alone",                                 [large, change("/b")],                              1],
  ["so is one with large values",                       [heavy, change("/b")],                              1],
  ["a call has 64 transactions at most",                many(200, "/k").map((key) => change(key)),          64],
])("%s", (_, transactions, length) => {
  expect(batchLength(transactions)).toBe(length);
});
