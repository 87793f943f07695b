import { expect, test } from "vitest";
import { missingIn } from "./contents.ts";

const before = new Map([
  ["defaultdb", "3 relations, 1 functions, 1 event triggers"],
  ["second", "1 relations, 1 functions, 1 event triggers"],
]);

test.each<[what: string, upgraded: Map<string, string>, words: string | undefined]>([
  ["nothing is missing, and initdb made a database more", new Map([...before, ["postgres", "none"]]), undefined],
  ["a database", new Map([...before].slice(0, 1)), "There is no database second."],
  [
    "a relation",
    new Map([...before, ["second", "0 relations, 1 functions, 1 event triggers"]]),
    "Database second has 0",
  ],
])("upgraded data lack: %s", (_what, upgraded, words) => {
  const told = missingIn(upgraded, before);
  expect(words === undefined ? told : told?.startsWith(words)).toBe(words === undefined ? undefined : true);
});
