import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { observedNode, observedService } from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test, vi } from "vitest";
import { newOperation } from "#operation/operation-definition.ts";
import { type ManagedServiceObject, type NodeSpec, serviceSubject } from "../../managed-service.ts";
import { progressOf } from "../../reconcile/managed-service-progress.ts";
import type { ObservedNode, ObservedService } from "../../reconcile/observed-service.ts";
import { serviceOperations } from "../../service-operations.ts";
import { copiedBy, waitStepOf, removalOf } from "./peer-progress.ts";

// No engine on offer elects its leader yet.
vi.mock("@holdfast/common/engine-catalog/engine-catalog.ts", async (original) => ({
  ...(await original<typeof import("@holdfast/common/engine-catalog/engine-catalog.ts")>()),
  topologyOf: () => "peers",
}));

interface Seen {
  readonly safeToRestart?: number[];
  readonly hasMajority?: boolean;
  readonly disconnectedMs?: number;
  /** Bytes of member 2 that still have to move. */
  readonly drains?: bigint;
  readonly members?: number[];
}

const nodes = [1, 2, 3].map((number) =>
  partial<NodeSpec>({ id: `n-${number}`, number, restarts: { delivered: 0, desired: 1 } }),
);

const service = (power: "on" | "off" = "on", formed = true) =>
  partial<ManagedServiceObject>({
    spec: partial<ManagedServiceObject["spec"]>({ power, nodes, restartCount: 1 }),
    status: partial<ManagedServiceObject["status"]>({ state: "Running", cluster: { formed, leader: "n-1" } }),
  });

/** Members 1 and 2 report; member 3 is away. */
function observed(of: Seen): ObservedService {
  const { safeToRestart = [], hasMajority = true, disconnectedMs = 60_000, drains, members = [1, 2, 3] } = of;
  const seen = nodes.map((node, index): ObservedNode => {
    const instance = create(InstanceObservationSchema, {
      state: "running",
      dataBytes: 1_000n,
      peers: {
        isMember: true,
        isLeader: index === 0,
        hasMajority,
        inSync: true,
        members,
        safeToRestart,
        leaving: drains === undefined ? [] : [{ number: 2, remainingBytes: drains }],
      },
    });
    const isAway = index === 2;
    return partial<ObservedNode>({
      node,
      connected: !isAway,
      isCurrent: !isAway,
      instance: isAway ? undefined : instance,
      ...(isAway && { disconnectedMs }),
    });
  });
  return partial<ObservedService>({ nodes: seen });
}

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, ManagedServiceObject, Seen, string | undefined]>([
  ["while each of the others is needed",        service(),              {},                      "WaitForMember"],
  ["without a majority",                        service(),              { hasMajority: false },  "WaitForMajority"],
  ["is none while a member can be spared",      service(),              { safeToRestart: [2] },  undefined],
  ["is none within the time of a restart",      service(),              { disconnectedMs: 500 }, undefined],
  ["is none while the service stops",           service("off"),         {},                      undefined],
  ["is none while the cluster is being formed", service("on", false),   {},                      undefined],
])("the obstacle %s", (_, of, seen, expected) => {
  expect(waitStepOf(of, observed(seen))).toBe(expected);
});

test("a removal progresses with the bytes that have moved", () => {
  const second = partial<NodeSpec>({ id: "n-2" });
  const steps = [1_000n, 500n, 0n].map((drains) => removalOf(observed({ drains }), second));
  expect(steps.map(({ step, progressPct }) => `${step} ${progressPct}`)).toEqual([
    "DrainMember 5",
    "DrainMember 40",
    "DrainMember 75",
  ]);
  expect(removalOf(observed({}), second)).toEqual({ step: "DrainMember", progressPct: 5 });
  expect(removalOf(observed({ members: [1] }), second)).toEqual({ step: "RemoveServer", progressPct: 80 });
});

test("an addition progresses with the data that the member has of those of the others", () => {
  const four: NodeSpec[] = [1, 2, 3, 4].map((number) => ({
    id: `n-${number}`,
    hostname: `db-${number}.local`,
    zone: "local",
    number,
    ...(number === 4 && { joining: true }),
  }));
  const of = runningService({}, { nodes: four }, { cluster: { formed: true, leader: "n-1" } });
  const subject = serviceSubject(of.metadata.id);
  const args = { id: "op", subject, organizationId: "o", now: 1, work: { nodeId: "n-4" } };
  const operation = newOperation({ ...args, type: serviceOperations.add_node });
  const marks = new Set<string>();
  const steps = [10n, 500n, 900n, 1_200n].map((dataBytes) => {
    const seen = four.map((node) => ({
      ...observedNode(node, { state: "running", dataBytes: node.number === 4 ? dataBytes : 1_000n }),
      isReplica: true as const,
    }));
    const { step, progressPct, mark } = progressOf(of, observedService(seen), operation);
    // A new mark extends the deadline of the operation.
    marks.add(mark);
    return `${step} ${progressPct}`;
  });
  expect(steps).toEqual(["SyncReplica 30", "SyncReplica 55", "SyncReplica 75", "SyncReplica 80"]);
  expect(marks.size).toBe(4);
});

test("a member without a report has none of the data", () => {
  const seen = observed({});
  expect(copiedBy(seen, partial<ObservedNode>({ node: partial<NodeSpec>({ id: "n-4" }) }))).toBe(0);
});
