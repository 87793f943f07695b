import { expect, test } from "vitest";
import { ownerPath } from "./owner-path.ts";

test.each([
  ["a", { apps: ["a"], files: ["f"] }, ["apps", "a"]],
  ["f", { apps: ["a"], files: ["f"] }, ["files", "f"]],
  ["s", { apps: ["a"], files: ["f"] }, ["services", "s"]],
  ["s", undefined, ["services", "s"]],
] as const)("the page of %s, among %j, is %j", (id, owners, path) => expect(ownerPath(id, owners)).toEqual(path));
