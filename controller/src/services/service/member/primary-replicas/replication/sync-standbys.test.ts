import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import type { ObservedNode } from "../../../reconcile/observed-service.ts";
import { syncStandbyTimeoutMs } from "../update-members.ts";
import { withSyncStandbys } from "./sync-standbys.ts";

const { service: created } = newServiceObject();
const [first] = created.spec.nodes;
if (first === undefined) throw new Error("a service has a node");
const service = {
  ...created,
  spec: {
    ...created.spec,
    power: "on" as const,
    replicationMode: "sync" as const,
    syncStandbys: ["n2"],
    nodes: [first, { ...first, id: "n2", number: 2 }],
  },
  status: { ...created.status, state: "Running" as const },
};

const follower = {
  node: { ...first, id: "n2" },
  instance: create(InstanceObservationSchema, {
    state: "running",
    replication: { role: "replica", state: "streaming" },
  }),
  connected: true,
  isCurrent: true,
} as ObservedNode;

function standbysWith(
  state: string,
  more: Partial<ObservedNode>,
  primary: readonly ObservedNode[] = [],
  of: ManagedServiceObject = service,
): readonly string[] | undefined {
  const instance = create(InstanceObservationSchema, { state: "running", replication: { state } });
  const node = { node: { ...first, id: "n2" }, instance, connected: true, isCurrent: true, ...more } as ObservedNode;
  return withSyncStandbys(of, { nodes: [...primary, node] } as never).spec.syncStandbys;
}

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, string, Partial<ObservedNode>, string[]]>([
  ["that follows stays",                                             "streaming",    {},                                        ["n2"]],
  ["remains while its primary may still fail over",       "disconnected", { disconnectedMs: syncStandbyTimeoutMs - 1 },             ["n2"]],
  ["is removed once it has reported for 3 s that it does not follow", "disconnected", { disconnectedMs: syncStandbyTimeoutMs },                 []],
  ["that reports nothing stays",                                     "disconnected", { disconnectedMs: syncStandbyTimeoutMs, connected: false }, ["n2"]],
])("a replica %s", (_, state, more, standbys) => {
  expect(standbysWith(state, more)).toEqual(standbys);
});

test.each<[string, Partial<ObservedNode>, string[]]>([
  ["has reported for less than 3 s that it does not follow", { disconnectedMs: syncStandbyTimeoutMs - 1 }, ["n2"]],
  ["reports nothing", { connected: false }, []],
])("a replica whose absence was announced, and that %s", (_, more, standbys) => {
  const warnings = { "service.replication_degraded": { since: 0, announced: true } };
  expect(standbysWith("disconnected", more, [], { ...service, status: { ...service.status, warnings } })).toEqual(
    standbys,
  );
});

test.each([
  ["does not run, in which no commit waits", "failed", ["n2"]],
  ["runs", "running", []],
])("a replica that does not follow, and whose primary's engine %s", (_, state, standbys) => {
  const instance = create(InstanceObservationSchema, { state });
  const primary = { node: first, instance, connected: true, isCurrent: true } as ObservedNode;
  expect(standbysWith("disconnected", { disconnectedMs: syncStandbyTimeoutMs }, [primary])).toEqual(standbys);
});

test.each([
  ["does not know it yet", { generation: 4n, state: "running" }, true, 5],
  ["has it but does not run", { generation: 5n, state: "failed" }, true, 5],
  ["runs with it, and whose standby lacks commits", { generation: 5n, state: "running" }, undefined, 5],
  ["runs with it, and whose standby has all commits", { generation: 5n, state: "running" }, true, undefined],
] as const)("a wait that began is confirmed only by a primary that %s", (_, reported, hasAllCommits, unconfirmed) => {
  const before = { ...service, spec: { ...service.spec, syncStandbys: [], instanceGeneration: 4 } };
  const nodes = (primary: object): ObservedNode[] => [
    {
      node: first,
      instance: create(InstanceObservationSchema, primary),
      connected: true,
      isCurrent: true,
    } as ObservedNode,
    { ...follower, ...(hasAllCommits && { hasAllCommits }) },
  ];
  const began = withSyncStandbys(before, { nodes: nodes({ generation: 4n, state: "running" }) } as never);
  expect(began.spec).toMatchObject({ syncStandbys: ["n2"], unconfirmedSyncGeneration: 5 });
  const after = withSyncStandbys(began, { nodes: nodes(reported) } as never);
  expect(after.spec.unconfirmedSyncGeneration).toBe(unconfirmed);
});
