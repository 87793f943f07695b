import { expect, test } from "vitest";
import type { OperationObject } from "#operation/operation.ts";
import {
  observedNode,
  observedService,
  replicaOf,
  type Observation,
} from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { type ManagedServiceObject, serviceSubject } from "../managed-service.ts";
import { managedServiceEvent } from "../reconcile/managed-service-event.ts";
import { isHealthy, isUpgraded } from "../reconcile/managed-service-plan.ts";
import { forceFailover } from "../member/primary-replicas/failover/forced-failover.ts";
import { canChangeVoters } from "../member/primary-replicas/replication/proven-replicas.ts";
import { canFailOver } from "../member/primary-replicas/failover/suspicion.ts";
import { syncStandbysOf } from "../member/primary-replicas/replication/sync-standbys.ts";
import { admitClients, canAdmitClients, rollBack } from "./image-canary.ts";
import { withPinnedReplicas } from "./image-rollout.ts";
import { withWriteFence } from "./write-fence.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service-operations.ts";
import { nextInRollout, withNextInRollout } from "../member/primary-replicas/rollout.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const image = { from: "old", to: "new", fromVersion: "17.1", toVersion: "18.1" };
const version = { from: "17", to: "18" };
const upgrade: OperationObject = newOperation({
  id: "op",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: serviceOperations.upgrade,
  now: 0,
  work: { updates: [], automatic: false, image, version },
});
const before = runningService(
  {},
  {
    nodes: [primary, ...["r2", "r3"].map((id, index) => ({ ...replicaOf(id, index + 2), failoverCandidate: 3 }))],
    nextNodeNumber: 4,
    instanceGeneration: 5,
    image: "old",
    replicationMode: "sync",
    syncStandbys: ["r2", "r3"],
  },
);
const started: ManagedServiceObject = {
  ...before,
  spec: {
    ...before.spec,
    version: "18",
    image: "new",
    nodes: withPinnedReplicas(before, image),
    canary: { operationId: "op", generation: 6 },
    instanceGeneration: 7,
  },
  status: { ...before.status, state: "Upgrading", operationId: "op" },
};

/** Every machine has its desired image; the primary runs it, and replicas do not follow. */
function scenario(service: ManagedServiceObject, reported: Readonly<Record<string, Observation>> = {}) {
  const { spec } = service;
  const nodes = spec.nodes.map((node) => {
    const isReplica = node.id !== primary?.id;
    const { image: has } = node.pinned ?? spec;
    const own = {
      state: "running",
      generation: BigInt(spec.instanceGeneration),
      engineVersion: has === "new" ? "18.1" : "17.1",
      replication: isReplica ? { role: "replica", state: "disconnected" } : { role: "primary", fencedGeneration: 3n },
      ...reported[node.id],
    };
    return observedNode(node, own, {
      machine: runningMachine(node.id, { image: has }),
      ...(isReplica && { isReplica: true as const }),
    });
  });
  return observedService(nodes);
}

const running = (service: ManagedServiceObject): ManagedServiceObject => ({
  ...service,
  status: { ...service.status, state: "Running", operationId: null },
});
const streams: Observation = { replication: { role: "replica", state: "streaming" } };

test("replicas retain image, data and candidacy during the primary's canary, and none is named", () => {
  expect(started.spec.nodes.map(({ pinned }) => pinned?.version)).toEqual([undefined, "17", "17"]);
  expect(started.spec.nodes.map(({ failoverCandidate }) => failoverCandidate)).toEqual([undefined, 3, 3]);
  expect(nextInRollout(started, scenario(started))).toBeUndefined();
  expect(canFailOver(started, scenario(started))).toBe(false);
  expect(canFailOver({ ...started, status: before.status }, scenario(started))).toBe(false);
  expect(canChangeVoters(started, scenario(started))).toBe(false);
});

test("the write fence is of the primary alone, and clients wait for it alone", () => {
  const there = scenario(
    { ...started, spec: { ...started.spec, image: "old" } },
    { [primary.id]: { savedGeneration: 6n } },
  );
  expect(withWriteFence(started, there).spec.canary?.writesFenced).toBe(true);
  expect(canAdmitClients(started, scenario(started, { r2: { state: "starting" } }), upgrade)).toBe(true);
  expect(canAdmitClients(started, scenario(started, { [primary.id]: { engineVersion: "17.1" } }), upgrade)).toBe(false);
});

test("before the switch everything is as it was", () => {
  const { after } = rollBack(started, upgrade, { code: "engine_failed", message: "No." }, 1);
  expect(after.spec.nodes).toEqual(before.spec.nodes);
  expect(after.spec).toMatchObject({ version: "17", image: "old", syncStandbys: ["r2", "r3"] });
  const open = running(admitClients(after, 2));
  expect(open.spec.nodes).toEqual(before.spec.nodes);
  expect(canFailOver(open, scenario(open))).toBe(true);
  // The operation continues until replicas are back, while the service serves clients.
  const operation = rollBack(started, upgrade, { code: "engine_failed", message: "No." }, 1).operation;
  const unsettled = scenario(open, { r2: { state: "starting" } });
  expect(isHealthy(open, unsettled)).toBe(false);
  expect(managedServiceEvent(open, unsettled, operation, 3)).toBeUndefined();
});

test("once clients are admitted no replica with old data is promoted, queried or waited for", () => {
  const open = admitClients(started, 2);
  expect(open.spec.nodes.map(({ failoverCandidate }) => failoverCandidate)).toEqual([undefined, undefined, undefined]);
  expect(syncStandbysOf(open)).toEqual([]);
  expect(isUpgraded(open, scenario(open), upgrade)).toBe(true);
  const served = running(open);
  expect(canFailOver(served, scenario(served))).toBe(false);
  const old = { isConnected: true, fencedGeneration: 9 };
  const [, replica] = served.spec.nodes;
  if (replica === undefined) throw new Error("the service has replicas");
  expect(() => forceFailover(served, replica, old, { operationId: "o", now: 3 })).toThrow("before the upgrade");
});

test("replicas copy the upgraded data one after another, and a failed one delays no other", () => {
  const open = admitClients(started, 2);
  expect(nextInRollout(open, scenario(open))).toBeUndefined();
  const served = running(open);
  const next = withNextInRollout(served, scenario(served));
  expect(next.spec.nodes.map(({ pinned }) => pinned?.version)).toEqual([undefined, undefined, "17"]);
  expect(isHealthy(next, scenario(next, { r2: { state: "preparing", replication: { state: "copying" } } }))).toBe(true);
  expect(nextInRollout(next, scenario(next, { r2: { state: "preparing" } }))).toBeUndefined();
  expect(nextInRollout(next, scenario(next))).toBeUndefined();
  expect(nextInRollout(next, scenario(next, { r2: streams }))).toMatchObject({
    kind: "restart",
    nodes: [{ id: "r3" }],
  });
  expect(nextInRollout(next, scenario(next, { r2: { state: "failed" } }))).toMatchObject({ nodes: [{ id: "r3" }] });
});
