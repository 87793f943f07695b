import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { expect, test } from "vitest";
import { completed, failed } from "#operation/operation.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { healthRecheckInMs, healthTransition } from "../health/managed-service-health.ts";
import { type ManagedServiceObject, type NodeSpec, serviceSubject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { serviceOperations, type ServiceOperationType } from "../service-operations.ts";
import { warningTransitions, warningsRecheckInMs } from "./member-warnings.ts";
import { plannedWorkOf } from "./planned-work.ts";

type Member = "a" | "b" | "c";
type State = "runs" | "silent" | "restarts" | "failed" | "drained";

/** Members a, b and c; the operation has reached all of them except those that await their turn. */
interface Round {
  readonly atS: number;
  readonly members: Partial<Record<Member, State>>;
  readonly awaiting?: readonly Member[];
  readonly operation?: ServiceOperationType | "completed" | "failed";
  readonly health?: ManagedServiceObject["status"]["health"]["status"];
}

const ids: readonly Member[] = ["a", "b", "c"];

function nodesOf({ awaiting = [] }: Round): NodeSpec[] {
  return ids.map((id, index) => ({
    id,
    hostname: `${id}.local`,
    zone: "local",
    number: index + 1,
    restarts: { delivered: awaiting.includes(id) ? 0 : 1, desired: 1 },
  }));
}

function observedOf(round: Round, nodes: readonly NodeSpec[]): ObservedService {
  const members = [1, 2, 3];
  const observed = nodes.map((node, index): ObservedNode => {
    const state = round.members[node.id as Member] ?? "runs";
    const instance = create(InstanceObservationSchema, {
      state: state === "restarts" ? "starting" : state === "failed" ? "failed" : "running",
      since: timestampFromMs(0),
      generation: 1n,
      restartCount: BigInt(round.awaiting?.includes(node.id as Member) === true ? 0 : 1),
      replication: { state: index === 0 ? "" : "streaming" },
      peers: { isMember: true, isLeader: index === 0, hasMajority: true, inSync: true, members },
    });
    const machine = runningMachine(node.id, {});
    return {
      node,
      ...(index > 0 && { isReplica: true as const }),
      machine: state === "drained" ? { ...machine, status: { ...machine.status, state: "stopped" } } : machine,
      connected: state !== "silent" && state !== "drained",
      isCurrent: true,
      instance,
      stoppedForDrain: state === "drained",
      silentHost: undefined,
    };
  });
  return { nodes: observed, names: "verified", isChanging: false };
}

/** Events of the rounds, as `second type node`. */
function eventsOf(databaseType: string, rounds: readonly Round[]): { events: string[]; service: ManagedServiceObject } {
  const statuses = ids.map((id) => ({ id, status: "Running", address: "a", publicAddress: "a" }) as const);
  const status = {
    primaryNodeId: "a",
    nodes: statuses,
    cluster: { formed: true, leader: "a" },
    healthMemory: { announced: "healthy", status: "healthy", since: 0 },
  } as const;
  let service = runningService({}, { databaseType, nextNodeNumber: 4, restartCount: 1 }, status);
  const events: string[] = [];
  for (const round of rounds) {
    const now = round.atS * 1_000;
    const { operation: type = "restart", health = "healthy" } = round;
    const started = newOperation({
      id: "op",
      subject: serviceSubject("s"),
      organizationId: "o",
      type: serviceOperations[type === "completed" || type === "failed" ? "restart" : type],
      now,
    } as Parameters<typeof newOperation>[0]);
    const fault = { code: "not_healthy", message: "" };
    const operation =
      type === "completed" ? completed(started, now) : type === "failed" ? failed(started, fault, now) : started;
    const nodes = nodesOf(round);
    service = { ...service, spec: { ...service.spec, nodes } };
    const observed = observedOf(round, nodes);
    const { plannedWork: _, ...rest } = service.status;
    const plannedWork = plannedWorkOf(service, observed, operation, now);
    service = {
      ...service,
      status: { ...rest, ...(plannedWork && { plannedWork }), health: { ...rest.health, status: health } },
    };
    const { record: healthMemory, event } = healthTransition(service, now);
    const warned = warningTransitions(service, observed, now);
    service = { ...service, status: { ...service.status, healthMemory, warnings: warned.record } };
    for (const { type: name, data } of [...(event ? [event] : []), ...warned.events])
      events.push(`${round.atS} ${name} ${String(data["node_id"] ?? data["missing"] ?? data["to"])}`);
  }
  return { events, service };
}

const every = (fromS: number, toS: number, round: Omit<Round, "atS">, stepS = 5): Round[] =>
  Array.from({ length: Math.floor((toS - fromS) / stepS) + 1 }, (_, index) => ({
    ...round,
    atS: fromS + index * stepS,
  }));
const alerts = (atS: number, member: Member, missing = [member]) => [
  `${atS} node.unhealthy ${member}`,
  `${atS} service.replication_degraded ${missing.map((id) => `${id}.local`).join()}`,
];

const engines = ["postgresql", "mysql", "valkey", "mongodb", "kafka", "opensearch"];
const reached = { awaiting: ["c"], members: { b: "silent" } } as const;

test.each(engines)("%s: the member that an operation restarts has no alert, for five minutes", (engine) => {
  const { events } = eventsOf(engine, [...every(0, 295, reached), ...every(300, 330, reached)]);
  expect(events).toEqual(alerts(310, "b"));
});

test.each(engines)("%s: another member that falls silent has its alert after 10 s", (engine) => {
  const { events } = eventsOf(engine, every(0, 60, { awaiting: ["c"], members: { b: "silent", c: "silent" } }));
  expect(events).toEqual(alerts(10, "c", ["b", "c"]));
});

test.each([
  ["falls silent again after it was updated", [...every(0, 20, reached), { atS: 25, awaiting: ["c"], members: {} }]],
  ["remains silent after the operation has failed", every(0, 25, reached)],
  ["is of a service without an operation", []],
] as const)("a member that %s has its alert after 10 s", (what, before) => {
  const operation = what.startsWith("falls") ? "restart" : "failed";
  const { events } = eventsOf("kafka", [...before, ...every(30, 60, { ...reached, operation })]);
  expect(events).toEqual(alerts(40, "b"));
});

test("a member whose alert was announced before the operation has no second one", () => {
  const { events } = eventsOf("kafka", [
    ...every(0, 30, { members: { b: "silent" }, operation: "completed" }),
    ...every(35, 400, reached),
  ]);
  expect(events).toEqual(alerts(10, "b"));
});

test("a member that fails to start has its alert after 10 s", () => {
  const failing = { awaiting: ["c"], members: { b: "failed" } } as const;
  const { events } = eventsOf("kafka", [...every(0, 20, reached), ...every(25, 60, failing)]);
  expect(events).toEqual(alerts(35, "b"));
});

test("the addition of a member explains the state of no other", () => {
  const { events } = eventsOf("kafka", every(0, 30, { members: { b: "silent" }, operation: "add_node" }));
  expect(events).toEqual(alerts(10, "b"));
});

test("a member of a drained host has no alert for five minutes, and none while it starts again", () => {
  const drained = { members: { b: "drained" }, operation: "completed" } as const;
  const starting = { members: { b: "silent" }, operation: "completed" } as const;
  expect(eventsOf("kafka", [...every(0, 100, drained), ...every(105, 150, starting)]).events).toEqual([]);
  expect(eventsOf("kafka", every(0, 330, drained)).events).toEqual(["310 service.replication_degraded b.local"]);
});

test.each([
  ["degraded", [[300, "degraded"]]],
  ["unknown", [[300, "unknown"]]],
  ["unhealthy", [[10, "unhealthy"]]],
] as const)("health that is %s during planned work is announced in time", (health, expected) => {
  const { events } = eventsOf("opensearch", every(0, 320, { ...reached, health }, 10));
  expect(events.filter((event) => event.includes("health_changed"))).toEqual(
    expected.map(([atS, to]) => `${atS} service.health_changed ${to}`),
  );
});

test("the service is checked again when planned work no longer explains a member", () => {
  const { service } = eventsOf("opensearch", every(0, 20, { ...reached, health: "degraded" }));
  expect([warningsRecheckInMs(service, 20_000), healthRecheckInMs(service, 20_000)]).toEqual([280_000, 280_000]);
  const ended = eventsOf("opensearch", [...every(0, 20, reached), { atS: 25, members: {} }]).service;
  expect(warningsRecheckInMs(ended, 25_000)).toBeNull();
});
