import { readFileSync, rmSync } from "node:fs";
import { beforeEach, expect, test } from "vitest";
import type { PeersObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type FixtureMembership, membershipFile } from "@holdfast/testing/engines/fixture-peers.ts";
import { openFixtureMachine } from "@holdfast/testing/machines/fixture-machine.ts";

const { start, startKeeper, keeper, file, converge, enginePids, observed, lastObservation, controller } =
  await openFixtureMachine();

beforeEach(start);

const member = (number: number, address = "127.0.0.1") => ({
  nodeId: `n-${number}`,
  number,
  hostname: `n-${number}`,
  address,
});
/** Address on which no engine listens. */
const silent = "127.0.0.77";

interface Change {
  readonly generation?: bigint;
  readonly form?: boolean;
  readonly numbers?: readonly number[];
  readonly leaving?: number[];
  readonly clusterId?: string;
  readonly parameters?: Record<string, string>;
  readonly restartCount?: bigint;
  readonly running?: boolean;
  /** True unless the whole service stops. */
  readonly othersRun?: boolean;
}

function convergePeer(change: Change) {
  const { form = false, numbers = [1], leaving = [], clusterId = "c-1", othersRun = true, ...more } = change;
  const members = numbers.map((number) => member(number, number === 1 ? "127.0.0.1" : silent));
  return converge({ engine: "fixture-peers", peers: { members, clusterId, form, leaving, othersRun }, ...more });
}

function reported(matches: (peers: PeersObservation) => boolean) {
  return observed(({ peers }) => peers !== undefined && matches(peers));
}

const membership = () => JSON.parse(readFileSync(file(`data/${membershipFile}`), "utf8")) as FixtureMembership;

/** The machine starts again from its disk, and its agent finds no controller. */
async function reboot(): Promise<void> {
  const before = enginePids();
  keeper().kill("SIGKILL");
  await expect.poll(() => enginePids().some((pid) => before.includes(pid))).toBe(false);
  startKeeper();
}

test("a first member forms the cluster once, and runs without a primary", async () => {
  expect((await convergePeer({ form: true })).failure).toBeUndefined();
  const { replication } = await reported(({ isMember, isLeader, hasMajority }) => isMember && isLeader && hasMajority);
  expect(replication).toBeUndefined();
  expect(membership()).toEqual({ origin: "formed", members: [1] });
  // The settings of the forming arrive again, as after a crash of the controller before it stores the report.
  await convergePeer({ form: true, generation: 2n, restartCount: 1n });
  await observed(({ restartCount, state }) => restartCount === 1n && state === "running");
  expect(controller.observations.at(-1)?.state).toBe("running");
  expect(membership()).toEqual({ origin: "formed", members: [1] });
});

test("a member starts from its stored settings after a reboot", async () => {
  await convergePeer({ form: true });
  await reported(({ isMember }) => isMember);
  await reboot();
  await expect.poll(() => enginePids().length).toBe(1);
  expect(membership()).toEqual({ origin: "formed", members: [1] });
});

test("a member whose forming ends early forms the same cluster again", async () => {
  const failed = await convergePeer({ form: true, parameters: { fails_to_form: "yes" } });
  expect(failed.failure?.message).toContain("the cluster is not formed");
  expect(lastObservation()?.peers).toBeUndefined();
  await convergePeer({ form: true, generation: 2n });
  await reported(({ isMember }) => isMember);
  expect(membership().origin).toBe("formed");
});

test("incomplete data of a cluster that exists by now join it", async () => {
  await convergePeer({ form: true, parameters: { fails_to_form: "yes" } });
  await convergePeer({ generation: 2n });
  await reported(({ isMember }) => isMember);
  expect(membership().origin).toBe("joined");
});

test("a member with an empty disk joins its cluster, and never forms one", async () => {
  await convergePeer({ form: true });
  await reported(({ isMember }) => isMember);
  expect((await convergePeer({ generation: 2n, running: false })).failure).toBeUndefined();
  await observed(({ state, generation }) => state === "stopped" && generation === 2n);
  for (const name of ["fixture", "peer.json"]) rmSync(file(`data/${name}`), { recursive: true });
  await convergePeer({ generation: 3n });
  await observed(({ peers, generation }) => generation === 3n && peers?.isMember === true);
  expect(membership().origin).toBe("joined");
});

test("data of another cluster are refused, and stay", async () => {
  await convergePeer({ form: true });
  await reported(({ isMember }) => isMember);
  await convergePeer({ generation: 2n, running: false });
  const refused = await convergePeer({ form: true, generation: 3n, clusterId: "c-2" });
  expect(refused.failure?.message).toContain("another cluster");
  expect(membership()).toEqual({ origin: "formed", members: [1] });
});

test("a member that its cluster needs stops neither for a restart nor for an image, but with all others", async () => {
  await convergePeer({ form: true, numbers: [1, 2, 3] });
  await reported(({ voters, reachableVoters, hasMajority }) => voters === 3 && reachableVoters === 1 && !hasMajority);
  const [before] = enginePids();
  const restart = { numbers: [1, 2, 3], generation: 2n, restartCount: 1n };
  expect((await convergePeer(restart)).failure?.message).toContain("The stop waits");
  const stop = { numbers: [1, 2, 3], running: false };
  expect((await convergePeer({ ...stop, generation: 3n })).failure?.message).toContain("The stop waits");
  expect(enginePids()).toEqual([before]);
  expect((await convergePeer({ ...stop, generation: 4n, othersRun: false })).failure).toBeUndefined();
  expect(enginePids()).toEqual([]);
});

test("the leader removes a member that is to leave, which may stop from then on", async () => {
  await convergePeer({ form: true, numbers: [1] });
  await reported(({ isLeader }) => isLeader);
  await convergePeer({ generation: 2n, numbers: [1], leaving: [1] });
  await reported(({ members }) => members.length === 0);
  // Without a vote, nothing depends on it.
  const restart = { generation: 3n, numbers: [1], leaving: [1], restartCount: 1n };
  expect((await convergePeer(restart)).failure).toBeUndefined();
});
