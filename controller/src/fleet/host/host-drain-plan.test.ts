import { expect, it } from "vitest";
import { machineObject } from "@holdfast/testing/machines/machine-object.ts";
import { testOwners } from "@holdfast/testing/machines/test-owners.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import type { MachineState } from "../machine/machine-lifecycle.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { HostObject } from "./host.ts";
import { planHostDrain } from "./host-drain-plan.ts";
import { type HostDrainState, hostDrainLifecycle } from "./host-lifecycle.ts";

function machine(
  owner: string | null,
  power: "on" | "off",
  state: MachineState,
  reason = "",
  kind = "managed-service",
): MachineObject {
  const made = machineObject({ owner: owner === null ? null : { kind, id: owner }, power });
  return { ...made, status: { ...made.status, state, reason } };
}
const runs = machine("s", "on", "running");
const rests = machine("r", "off", "stopped");
const waits = machine(null, "on", "waiting");
const drills = machine("d", "on", "running", "", "drill");
const caches = machine("c", "on", "running", "", "cache");
const alien = machine("x", "on", "running", "", "alien");
const lost = machine("l", "off", "unreachable", "Host h does not answer: refused");

function host(state: HostDrainState, consent: boolean | null, machines = 0): HostObject {
  const drain = consent === null ? null : { requestedAt: 1, stopSingleNodes: consent };
  const status = { state, since: 1, machines, remaining: 0, waitsFor: [] };
  return readyHost("h", { cordoned: consent !== null, drain }, {}, { drain: status });
}

// biome-ignore format: a table
it.each<[string, HostObject, MachineObject[], string | undefined, number, [string, RegExp][]]>([
  ["is none without a request",                       host("none", null),         [runs],        undefined,   0, []],
  ["begins with the request",                         host("none", false),        [runs],        "requested", 1, [["s", /only node here\. Drain with stop_single_nodes/]]],
  ["is blocked by a single node without consent",     host("draining", false),    [runs, rests], "ownerBlocks", 1, [["s", /only node here/]]],
  ["stays blocked, and says so once",                 host("blocked", false),     [runs],        undefined,   1, [["s", /only node here/]]],
  ["continues with consent",                          host("blocked", true),      [runs],        "unblocked", 1, [["s", /being stopped/]]],
  ["waits for machines being stopped",                host("draining", true),     [runs, rests], undefined,   1, [["s", /being stopped/]]],
  ["waits for machines of the warm pool",             host("draining", true),     [waits, rests], undefined,  1, []],
  ["is not blocked by machines of the warm pool",     host("draining", false),    [waits],       undefined,   1, []],
  ["ends when nothing runs",                          host("draining", true),     [rests],       "emptied",   0, []],
  ["ends without consent when nothing ran",           host("draining", false),    [],            "emptied",   0, []],
  ["stays over",                                      host("drained", true),      [rests],       undefined,   0, []],
  ["begins again when something runs",                host("drained", true),      [runs],        "refilled",  1, [["s", /being stopped/]]],
  ["names an unreachable machine with the reason",    host("draining", true),     [lost],        undefined,   1, [["l", /is unreachable: Host h does not answer/]]],
  ["waits for a restore drill, which needs no consent", host("draining", false), [drills],      undefined,   1, [["d", /restore drill, which ends/]]],
  ["is not said to stop a restore drill by consent",  host("draining", true),     [drills],      undefined,   1, [["d", /restore drill, which ends/]]],
  ["waits for an owner with a specific result",        host("draining", false),    [caches],      undefined,   1, [["c", /Another cache is filled/]]],
  ["is blocked by an owner that no system handles",   host("draining", true),     [alien],       "ownerBlocks", 1, [["x", /No system of the controllers handles the alien/]]],
  ["is canceled when the host is uncordoned",         host("blocked", null, 5),   [runs],        "cancelled", 0, []],
])("a drain %s", (_, given, machines, event, left, waitsFor) => {
  const planned = planHostDrain(given, machines, () => false, testOwners);
  expect([planned.event, planned.change.remaining]).toEqual([event, left]);
  expect(planned.change.waitsFor.map(({ ownerId }) => ownerId)).toEqual(waitsFor.map(([id]) => id));
  for (const [index, [, reason]] of waitsFor.entries()) expect(planned.change.waitsFor[index]?.reason).toMatch(reason);
});

it("can be canceled in each of its states", () => {
  const states = [...new Set(hostDrainLifecycle.rows.flatMap(([from, , to]) => [from, to]))];
  for (const state of states.filter((each) => each !== "none"))
    expect(hostDrainLifecycle.rows.some(([from, event]) => from === state && event === "cancelled")).toBe(true);
});

it("remembers the number of machines at its start", () => {
  expect(planHostDrain(host("draining", true, 4), [rests], () => false, testOwners).change.machines).toBe(4);
  expect(planHostDrain(host("none", true), [runs, rests], () => false, testOwners).change.machines).toBe(2);
});

it("moves a node whose service has another one, and blocks the service that has only this one", () => {
  const planned = planHostDrain(host("draining", false), [runs, lost], ({ id }) => id === "s", testOwners);
  expect(planned.event).toBe("ownerBlocks");
  expect(planned.change.waitsFor[0]).toMatchObject({
    ownerKind: "managed-service",
    reason: expect.stringMatching(/^Another node/),
  });
});
