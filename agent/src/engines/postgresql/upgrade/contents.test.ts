import { expect, test } from "vitest";
import { missingIn } from "./contents.ts";

const before = new Map([
  ["defaultdb", "3 relations, 1 functions, 1 event triggers"],
  ["second", "1 relations, 1 functions, 1 event triggers"],
]);

test.each<[what: string, upgraded: Map<string, string>, expected: string | undefined]>([
  ["nothing, if initdb created another database", new Map([...before, ["postgres", "none"]]), undefined],
  ["a database", new Map([...before].slice(0, 1)), "There is no database second."],
  [
    "a relation",
    new Map([...before, ["second", "0 relations, 1 functions, 1 event triggers"]]),
    "Database second has 0",
  ],
])("upgraded data lack: %s", (_what, upgraded, expected) => {
  const missing = missingIn(upgraded, before);
  expect(expected === undefined ? missing : missing?.startsWith(expected)).toBe(
    expected === undefined ? undefined : true,
  );
});
