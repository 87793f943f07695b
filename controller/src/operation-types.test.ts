import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createAssembly } from "#kernel/assembly.ts";
import { operationTypes } from "#operation/operation-definition.ts";
import { systems } from "./systems.ts";

const declared = createAssembly(systems).useFor("the test")(operationTypes);
const proto = readFileSync(new URL("../../proto/holdfast/v1/operation.proto", import.meta.url), "utf8");

/** Types in the comment of `Operation.type`, by the words of the sentence before them, such as "the service". */
function documented(): Map<string, string[]> {
  const lines = proto.split("\n");
  const end = lines.findIndex((line) => line.trim().startsWith("string type = 3"));
  const begin = lines.slice(0, end).findLastIndex((line) => !line.trim().startsWith("//"));
  const comment = lines
    .slice(begin + 1, end)
    .map((line) => line.trim().replace(/^\/\/ /, ""))
    .join(" ");
  const sentences = comment.matchAll(/For ([^:]+): ([^.]+)\./g);
  return new Map(
    Array.from(sentences, ([, of = "", list = ""]) => [
      of,
      Array.from(list.matchAll(/"(\w+)"/g), ([, type = ""]) => type),
    ]),
  );
}

test("the comment of Operation.type in the API names every type of operation, by its object", () => {
  const types = Map.groupBy(declared, ({ of }) => of);
  expect(documented()).toEqual(
    new Map(Array.from(types, ([of, definitions]) => [of, definitions.map(({ type }) => type)])),
  );
});
