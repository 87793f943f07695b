import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { warningTransitions, warningsRecheckInMs } from "./member-warnings.ts";
import { replicaNode } from "./new-replica.ts";
import { partial } from "@holdfast/testing/partial.ts";

const [first] = runningService().spec.nodes;
if (first === undefined) throw new Error("a service has a node");
const { joining: _, ...replica } = replicaNode({ id: "r", hostname: "db.local", zone: "local", number: 2 });
const members = { nodes: [first, replica], nextNodeNumber: 3 };

type Observation = "well" | "cutOff" | "silent";

function observed(service: ManagedServiceObject, observation: Observation): ObservedService {
  const nodes = service.spec.nodes.map((node): ObservedNode => {
    const isReplica = node.id !== service.status.primaryNodeId;
    const isHealthy = !isReplica || observation === "well";
    const checks = [{ name: "replication", status: isHealthy ? "healthy" : "unhealthy", reason: "" }];
    const replication = { state: isHealthy ? "streaming" : "disconnected" };
    return {
      node,
      ...(isReplica && { isReplica }),
      machine: { metadata: { id: node.id }, status: { state: "running" } } as MachineObject,
      connected: !isReplica || observation !== "silent",
      instance: partial<InstanceObservation>({ state: "running", checks, ...(isReplica && { replication }) }),
      stoppedForDrain: false,
      isCurrent: true,
      silentHost: undefined,
    };
  });
  return { nodes, names: "verified", isChanging: false };
}

/** Events of observations of the replica, at seconds since the first. */
function reported(
  spec: Partial<ManagedServiceObject["spec"]>,
  ...observations: readonly (readonly [number, Observation])[]
) {
  const running = { id: first?.id ?? "", status: "Running", address: "a", publicAddress: "a" } as const;
  let service = runningService({}, spec, { nodes: [running, { ...running, id: replica.id }] });
  const events: string[] = [];
  for (const [afterS, observation] of observations) {
    const { record, events: now } = warningTransitions(service, observed(service, observation), afterS * 1_000);
    service = { ...service, status: { ...service.status, warnings: record } };
    for (const { type, data } of now) events.push(`${afterS} ${type} ${String(data["node_id"] ?? data["missing"])}`);
  }
  return { service, events };
}

test.each(["cutOff", "silent"] as const)(
  "a replica that is %s is announced once when it lasts, and again the next time",
  (observation) => {
    const both = (at: number) => [`${at} node.unhealthy r`, `${at} service.replication_degraded db-2.local`];
    const { events } = reported(
      members,
      [0, observation],
      [9, observation],
      [10, observation],
      [60, observation],
      [61, "well"],
      [62, observation],
      [72, observation],
    );
    expect(events).toEqual([...both(10), ...both(72)]);
  },
);

test.each([
  [
    "that is over before",
    members,
    [
      [0, "silent"],
      [9, "well"],
      [12, "silent"],
      [21, "silent"],
    ],
  ],
  [
    "of a service that is stopped",
    { ...members, power: "off" },
    [
      [0, "silent"],
      [10, "silent"],
    ],
  ],
  [
    "of a replica that has yet to get its data",
    { ...members, nodes: [first, { ...replica, joining: true }] },
    [
      [0, "silent"],
      [10, "silent"],
    ],
  ],
] as const)("nothing is announced %s", (_what, spec, observations) => {
  expect(reported(spec, ...observations).events).toEqual([]);
});

test("the service is checked again when the announcement is due", () => {
  expect(warningsRecheckInMs(reported(members, [0, "silent"], [4, "silent"]).service, 4_000)).toBe(6_000);
  expect(warningsRecheckInMs(reported(members, [0, "silent"], [10, "silent"]).service, 10_000)).toBeNull();
  expect(warningsRecheckInMs(reported(members, [0, "well"]).service, 0)).toBeNull();
});
