import { expect, test } from "vitest";
import { observedNode, observedService, replicaOf } from "../../../../../test/support/controller/observed-service.ts";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import type { ManagedServiceObject, Restarts } from "../managed-service.ts";
import type { HeldSettings, ObservedService } from "../observed-service.ts";
import { restartsOf, withoutRestarts, withRestart } from "./restarts.ts";
import { nextTurn, withTurn } from "./turns.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const nodes = [primary, replicaOf("r2", 2), replicaOf("r3", 3)];
const lacks: Restarts = { told: 0, wanted: 1 };
const had: Restarts = { told: 1, wanted: 1 };

interface Look {
  readonly restarts?: Restarts;
  readonly state?: "running" | "starting" | "failed";
  readonly follows?: "streaming" | "catchup" | "disconnected";
  readonly connected?: boolean;
  /** For so long it has been seen not to follow. */
  readonly awayMs?: number;
  readonly generation?: number;
  /** Its machine keeps another image with this version. */
  readonly keeps?: string;
  /** Absent: as many as it was told of. */
  readonly restartCount?: number;
}

function world(
  looks: readonly Look[],
  held?: HeldSettings,
): { service: ManagedServiceObject; observed: ObservedService } {
  const own = nodes.map((node, index) => {
    const { restarts, keeps: version } = looks[index] ?? {};
    const keeps = version !== undefined && { keeps: { image: `of ${version}`, version } };
    return { ...node, ...(restarts !== undefined && { restarts }), ...keeps };
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
      ...look
    } = looks[index] ?? {};
    const { restartCount = restartsOf(service.spec, node).told } = look;
    const replication = index === 0 ? { role: "primary", state: "" } : { role: "replica", state: follows };
    const told = { state, generation: BigInt(generation), restartCount: BigInt(restartCount), replication };
    return observedNode(node, told, { connected, ...(awayMs !== undefined && { awayMs }) });
  });
  return { service, observed: observedService(seen, held && { heldSettings: held }) };
}

const words = (looks: readonly Look[], held?: HeldSettings): string => {
  const { service, observed } = world(looks, held);
  const turn = nextTurn(service, observed);
  if (turn === undefined) return "nobody";
  return turn.kind === "switchOver" ? `over to ${turn.to.id}` : turn.nodes.map(({ id }) => id).join();
};

const waits: Look = { restarts: lacks };
const back: Look = { restarts: had };
const away: Look = { ...waits, connected: false };

// biome-ignore format: a table, aligned so that it reads as one
test.each<[what: string, primary: Look, r2: Look, r3: Look, next: string]>([
  ["without a restart that is wanted",                      {},    {},                                      {},                               "nobody"],
  ["a replica is the first",                                waits, waits,                                   waits,                            "r2"],
  ["nobody while it is away",                               waits, { ...back, connected: false },           waits,                            "nobody"],
  ["nobody while its engine starts",                        waits, { ...back, state: "starting" },          waits,                            "nobody"],
  ["nobody while it has not restarted yet",                 waits, { ...back, restartCount: 0 },            waits,                            "nobody"],
  ["nobody while it does not follow again",                 waits, { ...back, follows: "disconnected" },    waits,                            "nobody"],
  ["nobody while its engine is broken",                     waits, { ...back, state: "failed" },            waits,                            "nobody"],
  ["then the next replica",                                 waits, back,                                    waits,                            "r3"],
  ["nobody while the primary is not well",                  { ...waits, state: "starting" }, back,          waits,                            "nobody"],
  ["nobody while the primary lacks settings",               { ...waits, generation: 4 }, back,              waits,                            "nobody"],
  ["the primary is the last, and gives way",                waits, back,                                    back,                             "over to r2"],
  ["a replica that is away for a moment is waited for",     waits, { ...away, awayMs: 29_999 },             back,                             "nobody"],
  ["one that stays away is passed over",                    waits, { ...away, awayMs: 30_000 },             back,                             "over to r3"],
  ["and so is one that does not come up",                   waits, { ...waits, state: "failed" },           back,                             "over to r3"],
  ["one that comes up is waited for",                       waits, { ...waits, state: "starting" },         back,                             "nobody"],
  ["without a replica the primary restarts as it is",       waits, { ...away, awayMs: 30_000 },             { ...away, awayMs: 30_000 },      "node-1"],
  ["a replica of an older version, which follows no newer primary", {}, { keeps: "16", follows: "disconnected" },  {},                               "r2"],
  ["such a replica waits for another one's turn to end",    {},    { keeps: "16", follows: "disconnected" }, { state: "starting" },           "nobody"],
  ["a replica that comes back has its turn then",           back,  waits,                                   back,                             "r2"],
])("%s", (_what, first, second, third, next) => {
  expect(words([first, second, third])).toBe(next);
});

test("settings that replicas need as much of fall on the primary first, which stays it", () => {
  const lowers = { lowers: true, raises: false };
  expect(words([waits, waits, waits], lowers)).toBe("node-1");
  expect(words([back, waits, waits])).toBe("r2");
  // Where others of them rise, replicas come first, and keep what they had of the rest.
  expect(words([waits, waits, waits], { lowers: true, raises: true })).toBe("r2");
  expect(words([waits, back, back], { lowers: true, raises: true })).toBe("node-1");
});

test("a turn is written with new settings, and a switchover is not written by it", () => {
  const { service, observed } = world([waits, waits, waits]);
  const { spec } = withTurn(service, observed);
  expect(spec.nodes.map((node) => restartsOf(spec, node))).toEqual([lacks, had, lacks]);
  expect(spec.instanceGeneration).toBe(6);
  const last = world([waits, back, back]);
  expect(withTurn(last.service, last.observed)).toBe(last.service);
});

test("a service that serves nobody, is on its own or stands still has no turns", () => {
  const { service, observed } = world([waits, waits, waits]);
  const stopped = { ...service, spec: { ...service.spec, power: "off" as const } };
  expect(nextTurn(stopped, observed)).toMatchObject({ kind: "restart", nodes: { length: 3 } });
  const succession = { from: "node-1", to: "r2", step: "yield", since: 0 } as const;
  expect(nextTurn({ ...service, spec: { ...service.spec, succession } }, observed)).toBeUndefined();
});

test("a restart of several waits for turns, and one of a service that is stopped does not", () => {
  const running = runningService({}, { nodes, restartCount: 4 });
  const asked = { ...running.spec, ...withRestart(running) };
  expect(asked.nodes.map((node) => restartsOf(asked, node))).toEqual(nodes.map(() => ({ told: 4, wanted: 5 })));
  const stopped = runningService({}, { nodes, restartCount: 4 }, { state: "Stopped" });
  expect(withRestart(stopped)).toEqual({ restartCount: 5, nodes });
  expect(asked.nodes.map(withoutRestarts)).toEqual(nodes);
});
