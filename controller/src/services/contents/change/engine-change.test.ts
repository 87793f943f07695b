import { expect, test } from "vitest";
import type { EngineProfile } from "../../engine/engine-profile.ts";
import { type EngineChange, requireNameLength } from "./engine-change.ts";

const user = (username: string) => ({ type: "create_user", user: { username } }) as EngineChange;
const database = (name: string) => ({ type: "create_database", name, owner: "app_user" }) as const;
const nameMax = { user: 32, database: 48 };

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, EngineChange, Pick<EngineProfile, "nameMax">, string | undefined]>([
  ["a user of the longest name",               user("u".repeat(32)),                               { nameMax }, undefined],
  ["a user of a longer name",                  user("u".repeat(33)),                               { nameMax }, "username"],
  ["a database of the longest name",           database("d".repeat(48)),                           { nameMax }, undefined],
  ["a database of a longer name",              database("d".repeat(49)),                           { nameMax }, "name"],
  ["a removal of any name",                    { type: "delete_user", username: "u".repeat(63) },  { nameMax }, undefined],
  ["any name in an engine without a limit",    user("u".repeat(63)),                               {},          undefined],
])("the limits of an engine apply to %s", (_, change, profile, field) => {
  const check = () => requireNameLength(change, profile);
  if (field === undefined) return expect(check).not.toThrow();
  expect(check).toThrow(expect.objectContaining({ errors: [expect.objectContaining({ field, code: "too_long" })] }));
});
