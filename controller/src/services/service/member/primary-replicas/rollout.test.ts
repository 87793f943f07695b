import { expect, test } from "vitest";
import { observedNode, observedService, replicaOf } from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject, Restarts } from "../../managed-service.ts";
import type { StandbySensitiveChange, ObservedService } from "../../reconcile/observed-service.ts";
import { restartsOf, withoutRestarts, withRestart } from "../restarts.ts";
import { nextInRollout, withNextInRollout } from "./rollout.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const nodes = [primary, replicaOf("r2", 2), replicaOf("r3", 3)];
const lacks: Restarts = { delivered: 0, desired: 1 };
const had: Restarts = { delivered: 1, desired: 1 };

interface Observation {
  readonly restarts?: Restarts;
  readonly state?: "running" | "starting" | "failed";
  readonly follows?: "streaming" | "catchup" | "disconnected";
  readonly connected?: boolean;
  /** Time for which it has been seen not to follow. */
  readonly awayMs?: number;
  readonly generation?: number;
  /** Version of the image that its machine is pinned to. */
  readonly pinned?: string;
  /** Absent: as many as its settings contain. */
  readonly restartCount?: number;
}

function scenario(
  observations: readonly Observation[],
  sensitive?: StandbySensitiveChange,
): { service: ManagedServiceObject; observed: ObservedService } {
  const own = nodes.map((node, index) => {
    const { restarts, pinned: version } = observations[index] ?? {};
    const pinned = version !== undefined && { pinned: { image: `of ${version}`, version } };
    return { ...node, ...(restarts !== undefined && { restarts }), ...pinned };
  });
  const spec = { nodes: own, nextNodeNumber: 4, instanceGeneration: 5, restartCount: 1, image: "of 17" };
  const service = runningService({}, spec);
  const seen = own.map((node, index) => {
    const {
      state = "running",
      follows = "streaming",
      connected = true,
      awayMs,
      generation = 5,
      ...observation
    } = observations[index] ?? {};
    const { restartCount = restartsOf(service.spec, node).delivered } = observation;
    const replication = index === 0 ? { role: "primary", state: "" } : { role: "replica", state: follows };
    const instance = { state, generation: BigInt(generation), restartCount: BigInt(restartCount), replication };
    return observedNode(node, instance, { connected, ...(awayMs !== undefined && { disconnectedMs: awayMs }) });
  });
  return { service, observed: observedService(seen, sensitive && { standbySensitiveChange: sensitive }) };
}

const summary = (observations: readonly Observation[], sensitive?: StandbySensitiveChange): string => {
  const { service, observed } = scenario(observations, sensitive);
  const step = nextInRollout(service, observed);
  if (step === undefined) return "nobody";
  return step.kind === "switchOver" ? `over to ${step.to.id}` : step.nodes.map(({ id }) => id).join();
};

const waits: Observation = { restarts: lacks };
const restarted: Observation = { restarts: had };
const away: Observation = { ...waits, connected: false };

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, primary: Observation, r2: Observation, r3: Observation, next: string]>([
  ["without a requested restart",                           {},    {},                                      {},                               "nobody"],
  ["a replica is the first",                                waits, waits,                                   waits,                            "r2"],
  ["none while it is disconnected",                         waits, { ...restarted, connected: false },           waits,                            "nobody"],
  ["none while its engine starts",                          waits, { ...restarted, state: "starting" },          waits,                            "nobody"],
  ["none while it has not restarted yet",                   waits, { ...restarted, restartCount: 0 },            waits,                            "nobody"],
  ["none while it does not follow again",                   waits, { ...restarted, follows: "disconnected" },    waits,                            "nobody"],
  ["none while its engine is failed",                       waits, { ...restarted, state: "failed" },            waits,                            "nobody"],
  ["then the next replica",                                 waits, restarted,                                    waits,                            "r3"],
  ["none while the primary is unhealthy",                   { ...waits, state: "starting" }, restarted,          waits,                            "nobody"],
  ["none while the primary lacks settings",                 { ...waits, generation: 4 }, restarted,              waits,                            "nobody"],
  ["the primary is the last, and gives way",                waits, restarted,                                    restarted,                             "over to r2"],
  ["a disconnected replica is waited for at first",     waits, { ...away, awayMs: 29_999 },             restarted,                             "nobody"],
  ["one that stays disconnected is skipped",                waits, { ...away, awayMs: 30_000 },             restarted,                             "over to r3"],
  ["and so is one that does not start",                     waits, { ...waits, state: "failed" },           restarted,                             "over to r3"],
  ["one that starts is waited for",                         waits, { ...waits, state: "starting" },         restarted,                             "nobody"],
  ["without a replica the primary restarts as it is",       waits, { ...away, awayMs: 30_000 },             { ...away, awayMs: 30_000 },      "node-1"],
  ["a replica of an older version, which follows no newer primary", {}, { pinned: "16", follows: "disconnected" },  {},                               "r2"],
  ["such a replica waits for another one's update",         {},    { pinned: "16", follows: "disconnected" }, { state: "starting" },           "nobody"],
  ["a replica that returns is updated then",                restarted,  waits,                                   restarted,                             "r2"],
])("%s", (_what, first, second, third, next) => {
  expect(summary([first, second, third])).toBe(next);
});

test("standby-sensitive settings are lowered on the primary first, which remains the primary", () => {
  const lowers = { lowers: true, raises: false };
  expect(summary([waits, waits, waits], lowers)).toBe("node-1");
  expect(summary([restarted, waits, waits])).toBe("r2");
  // If others of the parameters rise, replicas restart first, and retain their values of the rest.
  expect(summary([waits, waits, waits], { lowers: true, raises: true })).toBe("r2");
  expect(summary([waits, restarted, restarted], { lowers: true, raises: true })).toBe("node-1");
});

test("an update is written with new settings, and a switchover is not written by it", () => {
  const { service, observed } = scenario([waits, waits, waits]);
  const { spec } = withNextInRollout(service, observed);
  expect(spec.nodes.map((node) => restartsOf(spec, node))).toEqual([lacks, had, lacks]);
  expect(spec.instanceGeneration).toBe(6);
  const last = scenario([waits, restarted, restarted]);
  expect(withNextInRollout(last.service, last.observed)).toBe(last.service);
});

test("a service without clients, with one node or stopped has no rolling update", () => {
  const { service, observed } = scenario([waits, waits, waits]);
  const stopped = { ...service, spec: { ...service.spec, power: "off" as const } };
  expect(nextInRollout(stopped, observed)).toMatchObject({ kind: "restart", nodes: { length: 3 } });
  const primaryChange = { from: "node-1", to: "r2", step: "yield", since: 0 } as const;
  expect(nextInRollout({ ...service, spec: { ...service.spec, primaryChange } }, observed)).toBeUndefined();
});

test("a restart of several is a rolling update, and one of a stopped service is not", () => {
  const running = runningService({}, { nodes, restartCount: 4 });
  const args = { ...running.spec, ...withRestart(running) };
  expect(args.nodes.map((node) => restartsOf(args, node))).toEqual(nodes.map(() => ({ delivered: 4, desired: 5 })));
  const stopped = runningService({}, { nodes, restartCount: 4 }, { state: "Stopped" });
  expect(withRestart(stopped)).toEqual({ restartCount: 5, nodes });
  expect(args.nodes.map(withoutRestarts)).toEqual(nodes);
});
