import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ReadReplicationResult, ReadReplicationResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { describe, expect, test } from "vitest";
import { observedNode, observedService } from "@holdfast/testing/controller/observed-service.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import { setPositions } from "@holdfast/testing/controller/set-positions.ts";
import { bytePositions } from "../../../../engine/log-positions.ts";
import { isProven, withProvenReplicas } from "./proven-replicas.ts";
import { updateMembers } from "../update-members.ts";

const positions = bytePositions(BigInt);
const node = { ...nodeOf("b"), number: 2 };
const reported = (more: MessageInitShape<typeof ReadReplicationResultSchema>) =>
  create(ReadReplicationResultSchema, more);
const signal = new AbortController().signal;
const peerOf = (number: number, state = "streaming") => ({ number, state });
const primary = reported({ role: "primary", history: "h", peers: [peerOf(2)] });
const replica = reported({ role: "replica", streaming: true, silentMs: 200n, history: "h" });

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["both say so",                                primary,                                              replica,                           true],
  ["the primary does not answer",                undefined,                                            replica,                           false],
  ["the replica does not answer",                primary,                                              undefined,                         false],
  ["the primary does not list it",               reported({ role: "primary", history: "h", peers: [peerOf(3)] }),             replica,                           false],
  ["the primary still sends it missing log",     reported({ role: "primary", history: "h", peers: [peerOf(2, "catchup")] }),  replica,                           false],
  ["the primary is none",                        reported({ role: "replica", history: "h", peers: [peerOf(2)] }),                replica,                           false],
  ["its receiver is not connected",              primary,                                              { ...replica, streaming: false },  false],
  ["it has received nothing for a while",        primary,                                              { ...replica, silentMs: 3_000n },  false],
  ["it has data of another start of a primary",    primary,                                            { ...replica, history: "old" },    false],
])("a replica follows, or not: %s", (_, of, own, expected) => {
  expect(isProven(positions, node, of, own)).toBe(expected);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["less than its primary",                          "p:1-4",     true],
  ["more, which its primary wrote after its answer", "p:1-6",     true],
  ["a commit that its primary lacks, and less",      "p:1-4,r:1", false],
])("a replica follows, or not, with %s", (_, position, expected) => {
  const at = (report: ReadReplicationResult, has: string) => ({ ...report, position: has });
  expect(isProven(setPositions, node, at(primary, "p:1-5"), at(replica, position))).toBe(expected);
});

describe("a replica that reported that it follows", () => {
  const service = runningService({ id: "s" }, { nodes: [nodeOf("a"), node] });
  const started = { ...service, status: { ...service.status, primaryNodeId: "a" } };
  const [old, own] = started.spec.nodes;
  if (old === undefined || own === undefined) throw new Error("the service has two nodes");
  const observed = observedService([
    observedNode(old, { state: "running", replication: { role: "primary", fencedGeneration: 1n } }),
    observedNode(own, { state: "running", replication: { role: "replica", state: "streaming" } }),
  ]);
  const votesAfter = async (answers: Record<string, ReadReplicationResult>, requestedAgoMs = 0) => {
    const queried: string[] = [];
    const fleet = {
      async run(id: string) {
        queried.push(id);
        const value = answers[id];
        if (value === undefined) throw new Error("silent");
        return { output: { case: "readReplication", value } };
      },
    };
    const failureDetector = {
      leaseReport: () => ({ requestedAgoMs, grantedAgoMs: undefined, isEngineUnresponsive: false }),
    };
    const proven = await withProvenReplicas(started, observed, { fleet, failureDetector } as never, signal);
    const { nodes } = updateMembers(started, proven, 0).service.spec;
    return { queried, votes: nodes.map(({ failoverCandidate }) => failoverCandidate !== undefined) };
  };

  test("is a failover candidate once both ends confirm it now", async () => {
    expect(await votesAfter({ a: primary, b: replica })).toEqual({ queried: ["a", "b"], votes: [false, true] });
  });

  test("has none while the primary does not answer", async () => {
    expect(await votesAfter({ b: replica })).toEqual({ queried: ["a", "b"], votes: [false, false] });
  });

  test("no replica is proven, without a query, while the primary is suspect", async () => {
    expect(await votesAfter({ a: primary, b: replica }, 5_000)).toEqual({ queried: [], votes: [false, false] });
  });
});

describe("a standby for which commits begin to wait", () => {
  const [first, second] = [nodeOf("a"), { ...node, failoverCandidate: 1 }];
  const waiting = { syncStandbys: ["b"], unconfirmedSyncGeneration: 5, replicationMode: "sync" as const };
  const service = runningService({ id: "s" }, { databaseType: "mysql", nodes: [first, second], ...waiting });
  const started = { ...service, status: { ...service.status, primaryNodeId: "a" } };
  const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

  /** The queried nodes in their order, and whether the standby has all commits. */
  const confirmedBy = async (generation: bigint, own: string, more: Partial<ReadReplicationResult> = {}) => {
    const queried: string[] = [];
    const answers = { a: { ...primary, position: `${uuid}:1-5` }, b: { ...replica, position: own, ...more } };
    const fleet = {
      async run(id: "a" | "b") {
        queried.push(id);
        return { output: { case: "readReplication", value: answers[id] } };
      },
    };
    const failureDetector = { leaseReport: () => ({ requestedAgoMs: 0, isEngineUnresponsive: false }) };
    const observed = observedService([
      observedNode(first, { state: "running", generation, replication: { role: "primary", fencedGeneration: 1n } }),
      observedNode(second, { state: "running", replication: { role: "replica", state: "catchup" } }),
    ]);
    const { nodes } = await withProvenReplicas(started, observed, { fleet, failureDetector } as never, signal);
    return { queried, hasAll: nodes.find((each) => each.node.id === "b")?.hasAllCommits };
  };

  test("has all commits if it has those of the primary, which is queried first", async () => {
    expect(await confirmedBy(5n, `${uuid}:1-5`)).toEqual({ queried: ["a", "b"], hasAll: true });
    expect(await confirmedBy(5n, `${uuid}:1-7`)).toEqual({ queried: ["a", "b"], hasAll: true });
  });

  test("lacks commits that were acknowledged before and that it has not received", async () => {
    expect(await confirmedBy(5n, `${uuid}:1-4`)).toEqual({ queried: ["a", "b"], hasAll: undefined });
    for (const more of [{ streaming: false }, { history: "old" }, { timeline: 1 }])
      expect((await confirmedBy(5n, `${uuid}:1-5`, more)).hasAll).toBeUndefined();
  });

  test("is not queried before the primary runs with the settings of the wait", async () => {
    expect(await confirmedBy(4n, `${uuid}:1-5`)).toEqual({ queried: [], hasAll: undefined });
  });
});
