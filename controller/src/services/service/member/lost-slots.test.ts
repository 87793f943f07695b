import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import { rememberSlots } from "./lost-slots.ts";

/** By its name, and its database where that is another one. */
const slot = (told: string) => {
  const [name = "", database = "app"] = told.split(" of ");
  return { name, database, plugin: "pgoutput" };
};

/** Whoever is the primary tells these slots, or none yet. */
function observed(service: ManagedServiceObject, names: readonly string[] | undefined): ObservedService {
  const replication = { role: "primary", logicalSlots: names && { slots: names.map(slot) } };
  const nodes = service.spec.nodes.map((node) => ({
    node,
    machine: undefined,
    connected: true,
    instance: { replication } as unknown as InstanceObservation,
    isHeld: false,
    isCurrent: true,
    silentHost: undefined,
  }));
  return { nodes, names: "verified", isChanging: false };
}

test("slots that a primary has and the next one has not are told once each, and those that it drops are not", () => {
  let service = runningService();
  const [first] = service.spec.nodes;
  if (first === undefined) throw new Error("it has no node");
  service = { ...service, spec: { ...service.spec, nodes: [first, { ...first, id: "second" }] } };
  const stories: [primary: string, names: string[] | undefined][] = [
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
  const told = stories.map(([primaryNodeId, names]) => {
    service = { ...service, status: { ...service.status, primaryNodeId } };
    const { memory, events } = rememberSlots(service, observed(service, names));
    if (memory !== undefined) service = { ...service, status: { ...service.status, slots: memory } };
    return events.map(
      ({ type, data }) =>
        `${type} ${data["slot"]} of ${data["database"]} by ${data["plugin"]} ${data["to_node_id"] === primaryNodeId}`,
    );
  });
  const lost = (what: string) => [`service.slot_lost ${what} by pgoutput true`];
  expect(told).toEqual([[], [], [], lost("a of app"), [], lost("b of app"), [], [], [], lost("d of another")]);
});
