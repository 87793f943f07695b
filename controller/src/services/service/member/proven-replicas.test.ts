import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ReadReplicationResult, ReadReplicationResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { describe, expect, test } from "vitest";
import { observedNode, observedService } from "../../../../../test/support/controller/observed-service.ts";
import { nodeOf, runningService } from "../../../../../test/support/controller/service-object.ts";
import { isProven, withProvenReplicas } from "./proven-replicas.ts";
import { settleMembers } from "./settle-members.ts";

const node = { ...nodeOf("b"), number: 2 };
const told = (more: MessageInitShape<typeof ReadReplicationResultSchema>) => create(ReadReplicationResultSchema, more);
const peerOf = (number: number, state = "streaming") => ({ number, state });
const primary = told({ role: "primary", history: "h", peers: [peerOf(2)] });
const replica = told({ role: "replica", streaming: true, silentMs: 200n, history: "h" });

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["both say so",                                primary,                                              replica,                           true],
  ["the primary does not answer",                undefined,                                            replica,                           false],
  ["the replica does not answer",                primary,                                              undefined,                         false],
  ["the primary does not know it",               told({ role: "primary", history: "h", peers: [peerOf(3)] }),             replica,                           false],
  ["the primary still sends it what it lacks",   told({ role: "primary", history: "h", peers: [peerOf(2, "catchup")] }),  replica,                           false],
  ["the primary is none",                        told({ role: "replica", history: "h", peers: [peerOf(2)] }),                replica,                           false],
  ["its receiver is not connected",              primary,                                              { ...replica, streaming: false },  false],
  ["it has heard nothing for a while",           primary,                                              { ...replica, silentMs: 3_000n },  false],
  ["it has what another start of a primary wrote", primary,                                            { ...replica, history: "old" },    false],
])("a replica follows, or not: %s", (_, of, own, expected) => {
  expect(isProven(node, of, own)).toBe(expected);
});

describe("a replica that told that it follows", () => {
  const service = runningService({ id: "s" }, { nodes: [nodeOf("a"), node] });
  const begun = { ...service, status: { ...service.status, primaryNodeId: "a" } };
  const [old, own] = begun.spec.nodes;
  if (old === undefined || own === undefined) throw new Error("the service has two nodes");
  const observed = observedService([
    observedNode(old, { state: "running", replication: { role: "primary", fencedGeneration: 1n } }),
    observedNode(own, { state: "running", replication: { role: "replica", state: "streaming" } }),
  ]);
  const votesAfter = async (answers: Record<string, ReadReplicationResult>, askedAgoMs = 0) => {
    const asked: string[] = [];
    const fleet = {
      async run(id: string) {
        asked.push(id);
        const value = answers[id];
        if (value === undefined) throw new Error("silent");
        return { output: { case: "readReplication", value } };
      },
    };
    const pulse = { heard: () => ({ askedAgoMs, grantedAgoMs: undefined, isEngineSilent: false }) };
    const proven = await withProvenReplicas(begun, observed, { fleet, pulse } as never, new AbortController().signal);
    const { nodes } = settleMembers(begun, proven, 0).service.spec;
    return { asked, votes: nodes.map(({ vouches }) => vouches !== undefined) };
  };

  test("has a vote once both ends say so now", async () => {
    expect(await votesAfter({ a: primary, b: replica })).toEqual({ asked: ["a", "b"], votes: [false, true] });
  });

  test("has none while the primary does not answer", async () => {
    expect(await votesAfter({ b: replica })).toEqual({ asked: ["a", "b"], votes: [false, false] });
  });

  test("has none, and nobody is asked, while the primary is about to be given up", async () => {
    expect(await votesAfter({ a: primary, b: replica }, 5_000)).toEqual({ asked: [], votes: [false, false] });
  });
});
