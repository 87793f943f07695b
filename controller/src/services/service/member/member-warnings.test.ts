import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import { rememberWarnings, warningsDueInMs } from "./member-warnings.ts";
import { replicaNode } from "./new-replica.ts";

const [first] = runningService().spec.nodes;
if (first === undefined) throw new Error("a service has a node");
const { joining: _, ...replica } = replicaNode({ id: "r", hostname: "db.local", zone: "local", number: 2 });
const members = { nodes: [first, replica], nextNodeNumber: 3 };

type Look = "well" | "cutOff" | "silent";

function observed(service: ManagedServiceObject, look: Look): ObservedService {
  const nodes = service.spec.nodes.map((node): ObservedNode => {
    const isReplica = node.id !== service.status.primaryNodeId;
    const isWell = !isReplica || look === "well";
    const checks = [{ name: "replication", status: isWell ? "healthy" : "unhealthy", reason: "" }];
    const replication = { state: isWell ? "streaming" : "disconnected" };
    return {
      node,
      ...(isReplica && { isReplica }),
      machine: { metadata: { id: node.id }, status: { state: "running" } } as MachineObject,
      connected: !isReplica || look !== "silent",
      instance: { state: "running", checks, ...(isReplica && { replication }) } as unknown as InstanceObservation,
      isHeld: false,
      isCurrent: true,
      silentHost: undefined,
    };
  });
  return { nodes, names: "verified", isChanging: false };
}

/** What is told by looks at the replica, each so many seconds after the first. */
function told(spec: Partial<ManagedServiceObject["spec"]>, ...looks: readonly (readonly [number, Look])[]) {
  const running = { id: first?.id ?? "", status: "Running", address: "a", publicAddress: "a" } as const;
  let service = runningService({}, spec, { nodes: [running, { ...running, id: replica.id }] });
  const events: string[] = [];
  for (const [afterS, look] of looks) {
    const { memory, events: now } = rememberWarnings(service, observed(service, look), afterS * 1_000);
    service = { ...service, status: { ...service.status, warnings: memory } };
    for (const { type, data } of now) events.push(`${afterS} ${type} ${String(data["node_id"] ?? data["missing"])}`);
  }
  return { service, events };
}

test.each(["cutOff", "silent"] as const)(
  "a replica that is %s is told once when it lasts, and again the next time",
  (look) => {
    const both = (at: number) => [`${at} node.unhealthy r`, `${at} service.replication_degraded db-2.local`];
    const { events } = told(
      members,
      [0, look],
      [9, look],
      [10, look],
      [60, look],
      [61, "well"],
      [62, look],
      [72, look],
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
] as const)("nothing is told %s", (_what, spec, looks) => {
  expect(told(spec, ...looks).events).toEqual([]);
});

test("the service is looked at again when it is time to tell", () => {
  expect(warningsDueInMs(told(members, [0, "silent"], [4, "silent"]).service, 4_000)).toBe(6_000);
  expect(warningsDueInMs(told(members, [0, "silent"], [10, "silent"]).service, 10_000)).toBeNull();
  expect(warningsDueInMs(told(members, [0, "well"]).service, 0)).toBeNull();
});
