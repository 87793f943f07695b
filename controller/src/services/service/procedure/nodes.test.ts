import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { addNodes } from "../member/change-nodes.ts";
import { replicaNode } from "../member/new-replica.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { advance } from "../reconcile/service-advance.ts";
import { serviceOperations } from "../service-operations.ts";
import { procedureOf } from "./procedures.ts";

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

describe("an addition of two replicas", () => {
  const single = { ...running, spec: created.service.spec, status: { ...running.status, operationId: null } };
  const designed = addNodes(single, { operationId: "op", now: 1, nodeIds: ["r-2", "r-3"], zone: undefined });
  const up = { state: "running", reason: "", address: "127.0.0.2" } as const;
  const seen = (nodes: readonly NodeSpec[], failed?: string): ObservedService => ({
    nodes: nodes.map((node) => {
      const status = node.id === failed ? ({ ...up, state: "failed", reason: "No host has room." } as const) : up;
      const machine = { metadata: { id: node.id }, spec: { power: "on", image: "" }, status } as MachineObject;
      const absent = { connected: false, instance: undefined, stoppedForDrain: false, isCurrent: false };
      return { node, ...(node.joining && { isReplica: true }), machine, ...absent, silentHost: undefined };
    }),
    names: "verified",
    isChanging: false,
  });

  test("is one operation on the first of them, whose members have consecutive numbers", () => {
    const { nodes, nextNodeNumber } = designed.after.spec;
    expect(nodes.map(({ id, number, joining }) => [id, number, joining])).toEqual([
      [primary.id, primary.number, undefined],
      ["r-2", 2, true],
      ["r-3", 3, true],
    ]);
    expect([nextNodeNumber, designed.node.id]).toEqual([4, "r-2"]);
    expect(serviceOperations.add_node.workOf(designed.operation)).toEqual({ nodeId: "r-2", otherIds: ["r-3"] });
  });

  test("progresses with each node that has joined", () => {
    const [first, second, third] = designed.after.spec.nodes as readonly [NodeSpec, NodeSpec, NodeSpec];
    const joined = ({ joining: _joining, ...node }: NodeSpec): NodeSpec => node;
    const progress = (nodes: readonly NodeSpec[]) => {
      const service = { ...designed.after, spec: { ...designed.after.spec, nodes } };
      return procedureOf(designed.operation).progress(service, seen(nodes), designed.operation);
    };
    expect(progress([first, second, third])).toEqual({ step: "SetupAgent", progressPct: 12 });
    expect(progress([first, joined(second), third])).toEqual({ step: "SetupAgent", progressPct: 57 });
    expect(progress([first, second, joined(third)])).toEqual({ step: "SetupAgent", progressPct: 57 });
    expect(progress([first, joined(second), joined(third)])).toEqual({ step: "SetupDNS", progressPct: 90 });
  });

  test("fails if the machine of either cannot be created", () => {
    for (const id of ["r-2", "r-3"]) {
      const { after, operation } = advance(
        designed.after,
        seen(designed.after.spec.nodes, id),
        designed.operation,
        2,
        silentLog,
      );
      expect(operation?.status).toMatchObject({ state: "failed", error: { code: "machine_failed" } });
      expect(after.status).toMatchObject({ state: "Running", operationId: null });
    }
  });

  test("is refused where it makes more than five nodes", () => {
    const add = (count: number) =>
      addNodes(single, {
        operationId: "op",
        now: 1,
        nodeIds: Array.from({ length: count }, (_, index) => `r-${index}`),
        zone: undefined,
      });
    expect(add(4).after.spec.nodes).toHaveLength(5);
    expect(() => add(5)).toThrow(
      expect.objectContaining({
        key: "QUOTA_EXCEEDED",
        detail: "The service has 1 of 5 nodes; 5 more is too many.",
        // oxlint-disable-next-line holdfast/names -- a member of the API
        members: { quota: "nodes", used: 1, asked: 5, limit: 5 },
      }),
    );
  });
});
