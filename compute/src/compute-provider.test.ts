import { expect, test } from "vitest";
import { type ImageFacts, unionOf } from "./compute-provider.ts";

const facts = (available: boolean, ...plugins: string[]): ImageFacts => ({
  engine: "opensearch",
  version: "2.19",
  available,
  ...(plugins.length > 0 && { plugins }),
});

test.each([
  ["one host", [facts(true, "a", "b")], ["a", "b"]],
  ["hosts with different plugins", [facts(true, "a", "b"), facts(true, "b", "c")], ["b"]],
  ["a host without plugins", [facts(true, "a"), facts(true)], []],
  ["a host without plugins first", [facts(true), facts(true, "a")], undefined],
  ["a host without the engine", [facts(true, "a"), facts(false)], ["a"]],
  ["a host without the engine first", [facts(false), facts(true, "a")], ["a"]],
])("plugins are those of every host with the engine: %s", (_case, all, plugins) => {
  expect(unionOf(all)).toMatchObject([{ available: true }]);
  expect(unionOf(all)[0]?.plugins).toEqual(plugins);
});
