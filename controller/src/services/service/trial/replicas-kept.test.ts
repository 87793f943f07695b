import { expect, test } from "vitest";
import { newOperation, type OperationObject } from "#operation/operation.ts";
import {
  observedNode,
  observedService,
  replicaOf,
  type Told,
} from "../../../../../test/support/controller/observed-service.ts";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import { runningMachine } from "../../../../../test/support/machines/machine-object.ts";
import { type ManagedServiceObject, serviceSubject } from "../managed-service.ts";
import { managedServiceEvent } from "../managed-service-event.ts";
import { isHealthy, isUpgraded } from "../managed-service-plan.ts";
import { forceFailover } from "../member/forced-failover.ts";
import { votesChange } from "../member/proven-replicas.ts";
import { mayFailOver } from "../member/suspicion.ts";
import { syncStandbysOf } from "../member/sync-standbys.ts";
import { nextTurn, withTurn } from "../member/turns.ts";
import { admitClients, mayAdmitClients, rollBack } from "./image-trial.ts";
import { withDataKept } from "./images-in-turn.ts";
import { withSeal } from "./trial-seal.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const image = { from: "old", to: "new", fromVersion: "17.1", toVersion: "18.1" };
const version = { from: "17", to: "18" };
const upgrade: OperationObject = newOperation({
  id: "op",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: "upgrade",
  now: 0,
  work: { updates: [], automatic: false, image, version },
});
const before = runningService(
  {},
  {
    nodes: [primary, ...["r2", "r3"].map((id, index) => ({ ...replicaOf(id, index + 2), vouches: 3 }))],
    nextNodeNumber: 4,
    instanceGeneration: 5,
    image: "old",
    replicationMode: "sync",
    syncStandbys: ["r2", "r3"],
  },
);
const begun: ManagedServiceObject = {
  ...before,
  spec: {
    ...before.spec,
    version: "18",
    image: "new",
    nodes: withDataKept(before, image),
    trial: { operationId: "op", generation: 6 },
    instanceGeneration: 7,
  },
  status: { ...before.status, state: "Upgrading", operationId: "op" },
};

/** Every machine has the image that it is to have now; the primary runs what is in it, and replicas do not follow it. */
function world(service: ManagedServiceObject, told: Readonly<Record<string, Told>> = {}) {
  const { spec } = service;
  const nodes = spec.nodes.map((node) => {
    const isReplica = node.id !== primary?.id;
    const { image: has } = node.keeps ?? spec;
    const own = {
      state: "running",
      generation: BigInt(spec.instanceGeneration),
      engineVersion: has === "new" ? "18.1" : "17.1",
      replication: isReplica ? { role: "replica", state: "disconnected" } : { role: "primary", fencedGeneration: 3n },
      ...told[node.id],
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
const streams: Told = { replication: { role: "replica", state: "streaming" } };

test("replicas keep image, data and votes while the primary's data are tried, and nobody is named after it", () => {
  expect(begun.spec.nodes.map(({ keeps }) => keeps?.version)).toEqual([undefined, "17", "17"]);
  expect(begun.spec.nodes.map(({ vouches }) => vouches)).toEqual([undefined, 3, 3]);
  expect(nextTurn(begun, world(begun))).toBeUndefined();
  expect(mayFailOver(begun, world(begun))).toBe(false);
  expect(mayFailOver({ ...begun, status: before.status }, world(begun))).toBe(false);
  expect(votesChange(begun, world(begun))).toBe(false);
});

test("the seal is of the primary alone, and clients wait for it alone", () => {
  const there = world({ ...begun, spec: { ...begun.spec, image: "old" } }, { [primary.id]: { keptGeneration: 6n } });
  expect(withSeal(begun, there).spec.trial?.sealed).toBe(true);
  expect(mayAdmitClients(begun, world(begun, { r2: { state: "starting" } }), upgrade)).toBe(true);
  expect(mayAdmitClients(begun, world(begun, { [primary.id]: { engineVersion: "17.1" } }), upgrade)).toBe(false);
});

test("before the switch everything is as it was", () => {
  const { after } = rollBack(begun, upgrade, { code: "engine_failed", message: "No." }, 1);
  expect(after.spec.nodes).toEqual(before.spec.nodes);
  expect(after.spec).toMatchObject({ version: "17", image: "old", syncStandbys: ["r2", "r3"] });
  const open = running(admitClients(after, 2));
  expect(open.spec.nodes).toEqual(before.spec.nodes);
  expect(mayFailOver(open, world(open))).toBe(true);
  // The operation goes on until replicas are back, and the service serves meanwhile.
  const operation = rollBack(begun, upgrade, { code: "engine_failed", message: "No." }, 1).operation;
  const unsettled = world(open, { r2: { state: "starting" } });
  expect(isHealthy(open, unsettled)).toBe(false);
  expect(managedServiceEvent(open, unsettled, operation, 3)).toBeUndefined();
});

test("from the switch on nobody with data of before is promoted, asked for or waited for", () => {
  const open = admitClients(begun, 2);
  expect(open.spec.nodes.map(({ vouches }) => vouches)).toEqual([undefined, undefined, undefined]);
  expect(syncStandbysOf(open)).toEqual([]);
  expect(isUpgraded(open, world(open), upgrade)).toBe(true);
  const served = running(open);
  expect(mayFailOver(served, world(served))).toBe(false);
  const old = { answers: true, fencedGeneration: 9 };
  const [, replica] = served.spec.nodes;
  if (replica === undefined) throw new Error("the service has replicas");
  expect(() => forceFailover(served, replica, old, { operationId: "o", now: 3 })).toThrow("before the upgrade");
});

test("replicas get their data anew one after another once the service runs, and one that fails keeps no other waiting", () => {
  const open = admitClients(begun, 2);
  expect(nextTurn(open, world(open))).toBeUndefined();
  const served = running(open);
  const one = withTurn(served, world(served));
  expect(one.spec.nodes.map(({ keeps }) => keeps?.version)).toEqual([undefined, undefined, "17"]);
  expect(isHealthy(one, world(one, { r2: { state: "preparing", replication: { state: "copying" } } }))).toBe(true);
  expect(nextTurn(one, world(one, { r2: { state: "preparing" } }))).toBeUndefined();
  expect(nextTurn(one, world(one))).toBeUndefined();
  expect(nextTurn(one, world(one, { r2: streams }))).toMatchObject({ kind: "restart", nodes: [{ id: "r3" }] });
  expect(nextTurn(one, world(one, { r2: { state: "failed" } }))).toMatchObject({ nodes: [{ id: "r3" }] });
});
