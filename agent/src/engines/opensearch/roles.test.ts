import { expect, test } from "vitest";
import { firstSecurity, roleNames, roleOf, rolesFor } from "./roles.ts";

const writing = /^(indices:data\/write\/(index|update)|indices:admin\/(create|mapping\/put)|indices_all)/;

test("users reach every index but those of the platform and of the security plugin", () => {
  const [pattern = ""] = rolesFor({ writesBlocked: false }).admin.index_permissions[0]?.index_patterns ?? [];
  // Java anchors the expression at both ends.
  const expression = new RegExp(`^${pattern.slice(1, -1)}$`);
  const names = ["orders", ".tasks", "holdfast", ".holdfast-heartbeat", ".holdfast", ".opendistro_security"];
  expect(names.filter((name) => expression.test(name))).toEqual(["orders", ".tasks", "holdfast"]);
});

test("no role has rights over users, settings, snapshots or the routing of shards", () => {
  for (const writesBlocked of [false, true])
    for (const { cluster_permissions: rights } of Object.values(rolesFor({ writesBlocked })))
      for (const right of rights) {
        expect(right).not.toMatch(/^(\*|cluster:\*|cluster:admin\/\*|cluster_all|manage_snapshots)$/);
        expect(right).not.toMatch(
          /^cluster:admin\/(settings|snapshot|repository|reroute|opendistro|opensearch(?!\/ml\/)|opensearch\/ml\/(\*|connectors))/,
        );
      }
});

test("nobody may write while writes are blocked, and deletions remain", () => {
  const rightsOf = (writesBlocked: boolean, name: (typeof roleNames)[number]) =>
    rolesFor({ writesBlocked })[name].index_permissions.flatMap((each) => each.allowed_actions);
  for (const name of roleNames) expect(rightsOf(true, name).filter((right) => writing.test(right))).toEqual([]);
  expect(rightsOf(true, "readwrite")).toContain("indices:data/write/delete*");
  expect(rightsOf(true, "admin")).toContain("indices:admin/delete");
  expect(rightsOf(false, "readonly")).toEqual(rightsOf(true, "readonly"));
  expect(rightsOf(false, "readwrite")).toContain("indices:data/write/*");
});

test("a new cluster has no user, and maps each role to itself", () => {
  const { internal_users: users, roles_mapping: mapping } = firstSecurity();
  expect(users).toEqual({ _meta: { type: "internalusers", config_version: 2 } });
  expect(Object.keys(mapping ?? {})).toEqual(["_meta", "holdfast_admin", "holdfast_readwrite", "holdfast_readonly"]);
});

test("backend roles other than one of the platform's are custom", () => {
  expect([["holdfast_admin"], ["holdfast_readonly"], [], ["admin"], ["holdfast_admin", "x"]].map(roleOf)).toEqual([
    "admin",
    "readonly",
    "custom",
    "custom",
    "custom",
  ]);
});
