import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { replicaNode } from "../member/new-replica.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { advance } from "../reconcile/service-advance.ts";

const created = newServiceObject();
const [primary] = created.service.spec.nodes;
if (primary === undefined) throw new Error("a new service has a node");
const replica = replicaNode({ id: "r", hostname: created.service.spec.hostname, zone: primary.zone, number: 2 });
/** A service whose primary serves, and whose replica has no data yet. */
const running: ManagedServiceObject = {
  ...created.service,
  spec: { ...created.service.spec, nodes: [primary, replica], nextNodeNumber: 3 },
  status: { ...created.service.status, state: "Running" },
};

function observed(state: MachineObject["status"]["state"], reason = ""): ObservedService {
  const observation = (node: ObservedNode["node"], machine: Partial<MachineObject["status"]>): ObservedNode => ({
    node,
    ...(node.joining && { isReplica: true }),
    machine: { metadata: { id: node.id }, spec: { power: "on", image: "" }, status: machine } as MachineObject,
    connected: false,
    instance: undefined,
    stoppedForDrain: false,
    isCurrent: false,
    silentHost: undefined,
  });
  const up = { state: "running", reason: "", address: "127.0.0.2" } as const;
  return {
    nodes: [observation(primary!, up), observation(replica, { ...up, state, reason })],
    names: "verified",
    isChanging: false,
  };
}

test("a creation waits for its replicas, and reports that", () => {
  const { operation, after } = advance(running, observed("starting"), created.operation, 1, silentLog);
  expect(operation?.status).toMatchObject({ state: "running", step: "SyncReplicas", finishedAt: null });
  expect(after.status.state).toBe("Running");
});

test.each([
  ["that cannot be created", observed("failed", "No host has room."), 1, "machine_failed"],
  ["that does not come", observed("starting"), 2 + stuckAfterMs, "stuck"],
])("a replica %s fails the creation, and not the service", (_what, scenario, later, code) => {
  const started = advance(running, observed("starting"), created.operation, 1, silentLog);
  const { operation, after } = advance(started.after, scenario, started.operation, later, silentLog);
  expect(operation?.status).toMatchObject({ state: "failed", error: { code } });
  expect(operation?.status.error?.message).toContain("remove the node");
  expect(after.status).toMatchObject({ state: "Running", operationId: null });
});

test("a creation records the warnings of its restore, each once", () => {
  const reason = "Database a is invalid.";
  const restored = create(InstanceObservationSchema, { restore: { warnings: [reason] } });
  const scenario = observed("starting");
  const nodes = scenario.nodes.map((node) => ({ ...node, instance: restored }));
  const warned = advance(running, { ...scenario, nodes }, created.operation, 1, silentLog);
  expect(warned.operation?.status.warnings).toEqual([reason]);
  const later = advance(running, scenario, warned.operation, 2, silentLog);
  expect(later.operation?.status.warnings).toEqual([reason]);
});
