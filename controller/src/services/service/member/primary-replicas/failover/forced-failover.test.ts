import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject, ManagedServiceSpec } from "../../../managed-service.ts";
import { forceFailover, type OldPrimary } from "./forced-failover.ts";
import { nodePositions } from "./forced-failover.ts";
import { bytePositions } from "../../../../engine/log-positions.ts";
import { positionsOf } from "../replication/log-position.ts";
import { setPositions } from "@holdfast/testing/controller/set-positions.ts";

const args = { operationId: "forced", now: 5_000 };
const [a, b] = ["a", "b"].map((id, index) => ({ id, hostname: `${id}.local`, zone: "local", number: index + 1 }));

function pair(change: Partial<ManagedServiceSpec> = {}): ManagedServiceObject {
  const { service } = newServiceObject();
  const nodes = [a, b] as ManagedServiceSpec["nodes"];
  const status = { ...service.status, primaryNodeId: "a", operationId: null, state: "Running" } as const;
  return { ...service, spec: { ...service.spec, nodes, nextNodeNumber: 3, power: "on", ...change }, status };
}

const positions = positionsOf(pair());
const replica = (service: ManagedServiceObject) => service.spec.nodes[1] as ManagedServiceSpec["nodes"][number];
const answering: OldPrimary = { isConnected: true, fencedGeneration: 0 };
const silent: OldPrimary = { isConnected: false, fencedGeneration: 7 };
const voting = { nodes: [a, { ...b, failoverCandidate: 7 }] as ManagedServiceSpec["nodes"] };
const fence = { from: "a", to: "", step: "fence", since: 0 } as const;
const force = (service: ManagedServiceObject, old: OldPrimary) => forceFailover(service, replica(service), old, args);

test.each([
  ["a primary whose agent answers", pair(), answering],
  ["a silent one whose lease the replica confirms", pair(voting), silent],
])("the replica of %s becomes the primary once the old one has certainly ended", (_, service, old) => {
  const { after, operation } = force(service, old);
  expect(after.spec.primaryChange).toEqual({ from: "a", to: "", step: "fence", since: 5_000, forced: "b" });
  expect(after).toMatchObject({ status: { primaryNodeId: "a", operationId: "forced", term: service.status.term } });
  expect(operation?.spec).toMatchObject({ type: "failover", work: { from: "a" } });
});

test("a failover that waits for others continues with the chosen replica", () => {
  const waiting = pair({ ...voting, primaryChange: fence });
  const { after, operation } = force(waiting, silent);
  expect(operation).toBeUndefined();
  expect(after.spec).toEqual({ ...waiting.spec, primaryChange: { ...fence, forced: "b" } });
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a silent primary may continue without it",            pair(),                                                  silent,    "NOT_POSSIBLE"],
  ["it confirms only under settings that are newer",   pair(voting),                                            { isConnected: false, fencedGeneration: 6 }, "NOT_POSSIBLE"],
  ["the primary needs no lease",                       pair({ nextNodeNumber: undefined } as never),            answering, "NOT_SUPPORTED"],
  ["a successor is named already",                     pair({ primaryChange: { ...fence, to: "b", step: "promote" } }), answering, "WRONG_STATE"],
  ["it has yet to get its data",                       pair({ nodes: [a, { ...b, joining: true }] as never }),  answering, "WRONG_STATE"],
  ["the service is off",                               pair({ power: "off" }),                                  answering, "WRONG_STATE"],
] as const)("nothing is forced where %s", (_, service, old, key) => {
  expect(() => force(service, old)).toThrow(expect.objectContaining({ key }));
});

test("log beyond the position of the chosen one is lost", () => {
  const reports = new Map([
    ["a", { timeline: 2, position: "0/3000", history: "" }],
    ["b", { timeline: 1, position: "0/1000", history: "" }],
  ]);
  expect(nodePositions(pair(), "b", reports, positions)).toEqual([
    {
      nodeId: "a",
      role: "primary",
      answers: true,
      timeline: 2,
      position: "0/3000",
      lostBytes: 0x2000n,
      order: "after",
    },
    { nodeId: "b", role: "replica", answers: true, timeline: 1, position: "0/1000", lostBytes: 0n, order: "same" },
  ]);
  reports.set("a", { timeline: 0, position: "50", history: "new" });
  reports.set("b", { timeline: 0, position: "1000", history: "old" });
  expect(nodePositions(pair(), "b", reports, bytePositions(BigInt))[0]).toMatchObject({
    lostBytes: 50n,
    order: "after",
  });
  reports.set("a", { timeline: 0, position: "a:1-5", history: "" });
  reports.set("b", { timeline: 0, position: "a:1-4,b:1", history: "" });
  expect(nodePositions(pair(), "b", reports, setPositions)).toMatchObject([
    { lostBytes: 0n, order: "diverged" },
    { lostBytes: 0n, order: "same" },
  ]);
  reports.delete("a");
  expect(nodePositions(pair(), "b", reports, positions)[0]).toEqual({ nodeId: "a", role: "primary", answers: false });
});
