import { expect, test } from "vitest";
import { runningMachine } from "../../../../test/support/machines/machine-object.ts";
import { readyHost, rootedTier } from "../../../../test/support/platform/ready-host.ts";
import type { HostDrainState } from "./host-lifecycle.ts";
import { hostMessage } from "./host-message.ts";

const gib = 1024 ** 3;
const inTheWay = [{ serviceId: "s", reason: "It has its only node here." }];

function drainShown(state: HostDrainState, consent: boolean | null) {
  const drain = consent === null ? null : { askedAt: 1, stopSingleNodes: consent };
  const status = { state, since: 2, machines: 1, left: 1, waitsFor: state === "blocked" ? inTheWay : [] };
  const host = readyHost("h", { cordoned: consent !== null, drain }, {}, { drain: status });
  return hostMessage(host, []).drain;
}

// biome-ignore format: a table
test.each<[string, HostDrainState, boolean | null, string, number]>([
  ["that was not asked for",                    "none",     null,  "none",     0],
  ["that was asked for a moment ago",           "none",     false, "draining", 0],
  ["that is hindered",                          "blocked",  false, "blocked",  1],
  ["that got consent a moment ago",             "blocked",  true,  "draining", 0],
  ["that is under way",                         "draining", true,  "draining", 0],
  ["that is over",                              "drained",  true,  "drained",  0],
  ["that was given up a moment ago",            "blocked",  null,  "none",     0],
])("a drain %s is shown so", (_, state, consent, shown, waits) => {
  const drain = drainShown(state, consent);
  expect([drain?.state, drain?.waitsFor?.length ?? 0]).toEqual([shown, waits]);
});

test("names a hundred of the paths that are missing, and counts all", () => {
  const missingPaths = Array.from({ length: 101 }, (_, at) => ({ hostId: `h-${at}`, problem: "No route." }));
  const shown = hostMessage(readyHost("h", {}, {}, { missingPaths }), []);
  expect(shown.missingPaths).toHaveLength(100);
  expect(shown.missingPathCount).toBe(101);
});

test("tells of each pool for roots once, what it has and what is promised, and what is wrong with it", () => {
  const [pool, other] = [rootedTier(), rootedTier({ fileSystem: "pool q", problem: "It is gone." }, { name: "b" })];
  const host = readyHost("a", {}, { tiers: [pool, rootedTier({}, { name: "c" }), other] });
  const rootBytes = 3 * gib;
  const machines = [runningMachine("m", { hostId: "a", rootBytes }), runningMachine("n", { hostId: "b", rootBytes })];
  expect(hostMessage(host, machines)).toMatchObject({
    rootTotalBytes: BigInt(40 * gib),
    rootFreeBytes: BigInt(40 * gib),
    rootPromisedBytes: BigInt(rootBytes),
    reason: "It is gone.",
  });
  expect(hostMessage(readyHost("a"), machines)).not.toHaveProperty("rootTotalBytes");
});
