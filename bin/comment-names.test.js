import { expect, test } from "vitest";
import { missingNames } from "./comment-names.js";

const declaration = "export const maxAgeMs = 1;\n";

test.each([
  ["a docstring", "/** Stops after `maxIdleMs`. */\n", ["a.ts: maxIdleMs"]],
  ["a line comment", "const a = 1; // as `maxIdleMs()` does\n", ["a.ts: maxIdleMs"]],
  ["a name that another comment has", "/** `maxIdleMs` */\n// maxIdleMs\n", ["a.ts: maxIdleMs"]],
  ["a name of another file", "/** Stops after `maxAgeMs`. */\n", []],
  ["a name in a string", '/** `maxIdleMs` */\nconst a = "maxIdleMs";\n', []],
  ["a single word", "/** `nice` */\n", []],
])("finds names that do not exist: %s", (_, text, expected) => {
  const files = new Map([
    ["a.ts", text],
    ["b.ts", declaration],
  ]);
  expect(missingNames(files)).toEqual(expected);
});
