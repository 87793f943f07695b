import { expect, test } from "vitest";
import { observedNode, observedService } from "@holdfast/testing/controller/observed-service.ts";
import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import type { AnnouncedStorage } from "../service/managed-service.ts";
import { storageTransition } from "./storage-warning.ts";

interface NodeReport {
  readonly id?: string;
  readonly level: number;
  readonly blocked?: boolean;
  readonly connected?: boolean;
}

function observe(before: AnnouncedStorage | undefined, ...reports: readonly NodeReport[]) {
  const service = runningService({}, {}, before && { storage: before });
  const nodes = reports.map(({ id = node.id, level: storageLevel, blocked: writesBlocked = false, connected = true }) =>
    observedNode({ ...node, id }, { storageLevel, writesBlocked }, { connected }),
  );
  const { record, events } = storageTransition(service, observedService(nodes));
  return { record, events: events.map(({ type, data }) => [type, data["used_pct"], data["node_id"]]) };
}
const at = (level: number, writesBlocked = false): AnnouncedStorage => ({ level, writesBlocked });

test.each<[string, AnnouncedStorage | undefined, number, boolean, unknown[]]>([
  ["has free space", undefined, 0, false, []],
  ["gets fuller", undefined, 80, false, [["service.storage_low", 80, node.id]]],
  ["gets even fuller", at(80), 90, false, [["service.storage_low", 90, node.id]]],
  ["is as full as before", at(90), 90, false, []],
  ["is so full that writes are blocked", at(90), 95, true, [["service.writes_blocked", 95, node.id]]],
  [
    "fills from one report to the next",
    undefined,
    99,
    true,
    [
      ["service.storage_low", 90, node.id],
      ["service.writes_blocked", 99, node.id],
    ],
  ],
  ["is blocked again after writes were enabled", at(95), 95, true, [["service.writes_blocked", 95, node.id]]],
  ["gets emptier", at(95, true), 80, false, []],
])("a disk that %s: %j to %i %s emits %j", (_, before, level, blocked, events) => {
  const observed = observe(before, { level, blocked });
  expect(observed.events).toEqual(events);
  expect(observed.record ?? at(0)).toEqual(at(level, blocked));
});

test("a disconnected agent does not count", () => {
  expect(observe(at(90), { level: 0, connected: false })).toEqual({ record: at(90), events: [] });
});

test("a replica's disk emits a warning, and does not block the service's writes", () => {
  const { record, events } = observe(undefined, { level: 0 }, { id: "two", level: 99 });
  expect(events).toEqual([["service.storage_low", 90, "two"]]);
  expect(record).toEqual(at(99));
});

test("a disconnected member hides no other member's disk, and its level is retained", () => {
  const silent = { id: "two", level: 0, connected: false };
  expect(observe(at(80), { level: 95, blocked: true }, silent)).toEqual({
    record: at(95, true),
    events: [
      ["service.storage_low", 90, node.id],
      ["service.writes_blocked", 95, node.id],
    ],
  });
  expect(observe(at(95, true), { level: 0 }, silent)).toEqual({ record: at(95, true), events: [] });
});
