import { expect, test } from "vitest";
import { commandOf, listOf, quoted, newServiceOf } from "./create-view.ts";

const input = {
  name: "orders",
  engine: "postgresql",
  version: "",
  layout: "",
  collation: "",
  plan: "small",
  storageGb: "20",
  tier: "standard",
  nodes: "2",
  zone: "local",
  cidrs: "10.0.0.0/8, 192.0.2.0/24",
  isProtected: true,
};

test("a form becomes a request", () => {
  expect(newServiceOf(input)).toEqual({
    name: "orders",
    database_type: "postgresql",
    plan_name: "small",
    storage_size_gb: 20,
    storage_tier: "standard",
    zone: "local",
    node_count: 2,
    allowed_cidrs: ["10.0.0.0/8", "192.0.2.0/24"],
    deletion_protection: true,
  });
  expect(newServiceOf({ ...input, layout: "multi-db" })).toMatchObject({ layout_mode: "multi-db" });
  const collation = "Latin1_General_BIN2";
  expect(newServiceOf({ ...input, collation })).toMatchObject({ server_collation: collation });
  expect(listOf(" , ")).toEqual([]);
});

test("the command has the same input, and no text of a user is a command of the shell", () => {
  expect(commandOf({ ...input, name: "a; rm -rf ~" })).toContain("'a; rm -rf ~'");
  expect(quoted("it's")).toBe(String.raw`'it'\''s'`);
});
