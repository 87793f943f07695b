import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { slotTransition } from "./replication-events.ts";
import { partial } from "@holdfast/testing/partial.ts";

/** A slot by its name, and its database if that is another one. */
const slot = (replication: string) => {
  const [name = "", database = "app"] = replication.split(" of ");
  return { name, database, plugin: "pgoutput" };
};

/** The current primary reports these slots, or none yet; those with ` lost` at their end were invalidated. */
function observed(
  service: ManagedServiceObject,
  names: readonly string[] | undefined,
  role: "primary" | "" = "primary",
): ObservedService {
  const isLost = (name: string) => name.endsWith(" lost");
  const lost = names?.filter(isLost).map((name) => ({ ...slot(name.slice(0, -5)), lostReason: "wal_removed" }));
  const slots = names?.filter((name) => !isLost(name)).map(slot);
  const replication = { role, logicalSlots: slots && { slots, lost } };
  const nodes = service.spec.nodes.map((node) => ({
    node,
    machine: undefined,
    connected: true,
    instance: partial<InstanceObservation>({ replication }),
    stoppedForDrain: false,
    isCurrent: true,
    silentHost: undefined,
  }));
  return { nodes, names: "verified", isChanging: false };
}

test("slots that the new primary lacks are announced once each, and dropped ones are not", () => {
  let service = runningService();
  const [first] = service.spec.nodes;
  if (first === undefined) throw new Error("it has no node");
  service = { ...service, spec: { ...service.spec, nodes: [first, { ...first, id: "second" }] } };
  const scenarios: [primary: string, names: string[] | undefined][] = [
    [first.id, ["a", "b", "c"]],
    [first.id, ["a", "b"]],
    ["second", undefined],
    ["second", ["b"]],
    ["second", ["b"]],
    [first.id, []],
    ["second", []],
    ["second", ["d"]],
    ["second", ["d of another"]],
    [first.id, []],
  ];
  const replication = scenarios.map(([primaryNodeId, names]) => {
    service = { ...service, status: { ...service.status, primaryNodeId } };
    const { record, events } = slotTransition(service, observed(service, names));
    if (record !== undefined) service = { ...service, status: { ...service.status, slots: record } };
    return events.map(
      ({ type, data }) =>
        `${type} ${data["slot"]} of ${data["database"]} by ${data["plugin"]} ${data["to_node_id"] === primaryNodeId}`,
    );
  });
  const lost = (what: string) => [`service.slot_lost ${what} by pgoutput true`];
  expect(replication).toEqual([[], [], [], lost("a of app"), [], lost("b of app"), [], [], [], lost("d of another")]);
});

test.each(["primary", ""] as const)(
  "slots that the engine invalidates are announced once each, by role '%s'",
  (role) => {
    let service = runningService();
    const [first] = service.spec.nodes;
    if (first === undefined) throw new Error("it has no node");
    service = { ...service, spec: { ...service.spec, nodes: [first, { ...first, id: "second" }] } };
    const second = "second";
    const reports: [primary: string, names: string[]][] = [
      [first.id, ["a", "b"]],
      [first.id, ["a", "b lost"]],
      [first.id, ["a", "b lost"]],
      // It was dropped, created again, and lost again.
      [first.id, ["a", "b"]],
      [first.id, ["a", "b lost"]],
      // Slots that were copied are invalidated on each member.
      [second, ["a", "b lost"]],
      [second, ["a lost"]],
      [second, []],
      // The slot was lost before any report of it.
      [second, ["c lost"]],
    ];
    const announced = reports.map(([primaryNodeId, names]) => {
      service = { ...service, status: { ...service.status, primaryNodeId } };
      const { record, events } = slotTransition(service, observed(service, names, role));
      if (record !== undefined) service = { ...service, status: { ...service.status, slots: record } };
      return events.map(({ data }) => [data["slot"], data["reason"], data["from_node_id"] === data["to_node_id"]]);
    });
    const lost = (name: string) => [[name, "wal_removed", true]];
    expect(announced).toEqual([[], lost("b"), [], [], lost("b"), [], lost("a"), [], lost("c")]);
  },
);
