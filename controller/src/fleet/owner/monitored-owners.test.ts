import type { Call } from "@holdfast/common/call.ts";
import { expect, test } from "vitest";
import { partial } from "@holdfast/testing/partial.ts";
import type { MonitoredOwner, Monitoring } from "./monitored-owner.ts";
import { createMonitoredOwners } from "./monitored-owners.ts";
import type { OwnerKind } from "./owner-kind.ts";

function kindOf(
  kind: string,
  ids: readonly string[],
  of: Pick<Monitoring, "readScope" | "resourceKind"> = {},
): OwnerKind {
  const owner = (id: string) => partial<MonitoredOwner>({ owner: { kind, id }, organizationId: "o" });
  const monitoring = partial<Monitoring>({
    ...of,
    get: (id) => (ids.includes(id) ? owner(id) : undefined),
    exists: async (id) => ids.includes(id),
    ids: () => ids,
    ofOrganization: () => ids.map(owner),
  });
  return partial<OwnerKind>({ kind, monitoring });
}

const owners = createMonitoredOwners([
  kindOf("managed-service", ["s"]),
  partial<OwnerKind>({ kind: "drill" }),
  kindOf("app", ["a"], { readScope: "apps:read" }),
]);

function callOf(
  scopes: readonly string[],
  { organizationId = "o", resources }: { organizationId?: string; resources?: { kind: string; id: string }[] } = {},
): Call {
  return partial<Call>({
    principal: { organizationId, scopes: new Set(scopes), ...(resources !== undefined && { resources }) },
  });
}

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["any scope of services",         callOf(["alerts:read"]),                                                    ["s"]],
  ["the scope of the other kind",   callOf(["apps:read"]),                                                      ["s", "a"]],
  ["all scopes of its area",        callOf(["apps:*"]),                                                         ["s", "a"]],
  ["a token limited to the app",    callOf(["apps:read"], { resources: [{ kind: "app", id: "a" }] }),           ["a"]],
  ["a limit to another kind",       callOf(["apps:read"], { resources: [{ kind: "managed-service", id: "a" }] }), []],
  ["another organization",          callOf(["apps:read"], { organizationId: "other" }),                         []],
])("a caller with %s sees owners of these kinds", (_, call, expected) => {
  expect(["s", "a", "absent"].filter((id) => owners.find(id, call) !== undefined)).toEqual(expected);
});

test("a token that is limited to objects sees them as owners of another kind", () => {
  const files = createMonitoredOwners([kindOf("files-service", ["f"], { resourceKind: "managed-service" })]);
  const limitedTo = (kind: string) => callOf([], { resources: [{ kind, id: "f" }] });
  expect(files.find("f", limitedTo("managed-service"))?.owner.id).toBe("f");
  expect(files.find("f", limitedTo("files-service"))).toBeUndefined();
});

test("owners of all kinds are found by id, and listed", async () => {
  const { signal } = new AbortController();
  expect([owners.get("a")?.owner.kind, owners.get("s")?.owner.kind, owners.get("absent")]).toEqual([
    "app",
    "managed-service",
    undefined,
  ]);
  expect([...owners.ids()]).toEqual(["s", "a"]);
  expect(owners.ofOrganization("o").map(({ owner }) => owner.id)).toEqual(["s", "a"]);
  expect([await owners.exists("a", signal), await owners.exists("absent", signal)]).toEqual([true, false]);
  expect(() => owners.require("absent", callOf(["apps:read"]))).toThrow("There is no such service");
});
