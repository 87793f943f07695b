import { expect, test } from "vitest";
import { indexHealth, shardsText } from "./index-view.ts";

test.each([
  ["green", "healthy", "good"],
  ["yellow", "a copy has no node", "warn"],
  ["red", "documents are missing", "bad"],
  ["blue", "blue", "none"],
  [null, "closed", "none"],
])("an index that the engine calls %s is %s", (health, text, tone) =>
  expect(indexHealth({ health })).toEqual({ text, tone }),
);

test.each([
  [1, 0, "1"],
  [1, 1, "1 with 1 copy"],
  [3, 2, "3, each with 2 copies"],
])("%i shards and %i replicas are %j", (shards, replicas, text) => expect(shardsText({ shards, replicas })).toBe(text));
