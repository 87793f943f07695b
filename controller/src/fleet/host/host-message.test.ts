import { expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { testOwners } from "@holdfast/testing/machines/test-owners.ts";
import { readyHost, rootedTier } from "@holdfast/testing/platform/ready-host.ts";
import type { HostDrainState } from "./host-lifecycle.ts";
import { hostMessage } from "./host-message.ts";
import { hostKind } from "./host.ts";

const gib = 1024 ** 3;
const inTheWay = [{ ownerKind: "cache", ownerId: "c", reason: "It has its only node here." }];

function drainRendered(state: HostDrainState, consent: boolean | null) {
  const drain = consent === null ? null : { requestedAt: 1, stopSingleNodes: consent };
  const status = { state, since: 2, machines: 1, remaining: 1, waitsFor: state === "blocked" ? inTheWay : [] };
  const host = readyHost("h", { cordoned: consent !== null, drain }, {}, { drain: status });
  return hostMessage(host, [], testOwners).drain;
}

// biome-ignore format: a table
test.each<[string, HostDrainState, boolean | null, string, number]>([
  ["without a request",                         "none",     null,  "none",     0],
  ["that was just requested",                   "none",     false, "draining", 0],
  ["that is blocked",                           "blocked",  false, "blocked",  1],
  ["that just got consent",                     "blocked",  true,  "draining", 0],
  ["in progress",                               "draining", true,  "draining", 0],
  ["that is complete",                          "drained",  true,  "drained",  0],
  ["that was just canceled",                    "blocked",  null,  "none",     0],
])("a drain %s has this state", (_, state, consent, rendered, waits) => {
  const drain = drainRendered(state, consent);
  expect([drain?.state, drain?.waitsFor?.length ?? 0]).toEqual([rendered, waits]);
});

test("names the owners that a drain waits for, also by the id alone for older clients", () => {
  expect(drainRendered("blocked", false)?.waitsFor).toEqual([
    {
      serviceId: "c",
      owner: { kind: "cache", id: "c", name: "cache-c" },
      reason: "It has its only node here.",
    },
  ]);
});

test("reads a drain that a controller of an earlier version stored", () => {
  const host = readyHost("h", { cordoned: true, drain: { requestedAt: 1, stopSingleNodes: false } });
  const waitsFor = [{ serviceId: "s", reason: "It has its only node here." }];
  const drain = { state: "blocked", since: 2, machines: 1, left: 1, waitsFor };
  const { spec, status, ...rest } = JSON.parse(hostKind.format(host));
  const read = hostKind.parse(JSON.stringify({ ...rest, spec, status: { ...status, drain } }));
  expect(hostMessage(read, [], testOwners).drain).toMatchObject({
    left: 1,
    waitsFor: [{ serviceId: "s", owner: { kind: "", id: "s", name: "" } }],
  });
});

test("lists at most a hundred missing paths, and counts all", () => {
  const missingPaths = Array.from({ length: 101 }, (_, at) => ({ hostId: `h-${at}`, problem: "No route." }));
  const rendered = hostMessage(readyHost("h", {}, {}, { missingPaths }), [], testOwners);
  expect(rendered.missingPaths).toHaveLength(100);
  expect(rendered.missingPathCount).toBe(101);
});

test("has each pool for roots once, with its space, its reservations and its problem", () => {
  const [pool, other] = [rootedTier(), rootedTier({ fileSystem: "pool q", problem: "It is gone." }, { name: "b" })];
  const host = readyHost("a", {}, { tiers: [pool, rootedTier({}, { name: "c" }), other] });
  const rootBytes = 3 * gib;
  const machines = [runningMachine("m", { hostId: "a", rootBytes }), runningMachine("n", { hostId: "b", rootBytes })];
  expect(hostMessage(host, machines, testOwners)).toMatchObject({
    rootTotalBytes: BigInt(40 * gib),
    rootFreeBytes: BigInt(40 * gib),
    rootPromisedBytes: BigInt(rootBytes),
    reason: "It is gone.",
  });
  expect(hostMessage(readyHost("a"), machines, testOwners)).not.toHaveProperty("rootTotalBytes");
});
