import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema, PoolerSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import type { Instance } from "../engine-driver.ts";
import { poolerCompanion, poolerFrontOf } from "./pooler.ts";

const paths = { config: "/c", data: "/d", log: "/l", run: "/r", software: "/usr", tls: "/t" };
const spec = create(InstanceSpecSchema, {
  engine: "mysql",
  version: "9.7",
  nodeId: "first",
  address: "10.0.0.1",
  port: 3306,
  vcpu: 1,
  memoryBytes: 2n ** 31n,
  allowedCidrs: ["10.1.0.0/16"],
  pooler: create(PoolerSchema, { mode: "session", port: 3307 }),
});
/** The member `first` of a service whose primary is this node; an empty name is a service without other members. */
function instanceOf(primaryNodeId: string, address = "10.0.0.2"): Instance {
  const members = [
    { nodeId: "first", number: 1, address: "10.0.0.1" },
    { nodeId: "second", number: 2, address },
  ];
  const replication = create(ReplicationSchema, { primaryNodeId, members });
  return { spec: { ...spec, ...(primaryNodeId !== "" && { replication }) }, paths };
}

const own = { socket: "/r/forwarded.sock" };
const inUse = (instance: Instance, backend: "primary" | "engine") => {
  const of = poolerFrontOf(instance)?.backends[backend];
  if (of === undefined || !("fronts" in of)) throw new Error("the backend has no fronts");
  return of.fronts.flatMap(({ at, isInUse }) => (isInUse ? [at] : []));
};

test.each([
  ["a service without replicas", "", undefined, [own], [own]],
  ["the primary", "first", undefined, [own], [own]],
  [
    "a replica",
    "second",
    undefined,
    [{ address: { address: "10.0.0.2", port: 13_307 }, sourceAddress: "10.0.0.1" }],
    [],
  ],
  ["a replica of a primary without an address", "second", "", [], []],
] as const)("the pooler of %s forwards to the primary, and for other members only to its own engine", (...row) => {
  const [, primaryNodeId, address, ofClients, ofMembers] = row;
  const instance = instanceOf(primaryNodeId, address);
  expect(inUse(instance, "primary")).toEqual(ofClients);
  expect(inUse(instance, "engine")).toEqual(ofMembers);
});

test("clients are admitted by the allow-list, and members by their addresses at another port", () => {
  expect(poolerFrontOf(instanceOf("first"))?.listeners).toMatchObject([
    { addresses: [{ address: "10.0.0.1", port: 3307 }], allows: { cidrs: ["10.1.0.0/16"] }, backend: "primary" },
    { addresses: [{ address: "10.0.0.1", port: 13_307 }], allows: { cidrs: ["10.0.0.2"] }, backend: "engine" },
  ]);
});

test("the port of members admits nobody on a service of one node", () => {
  const [, members] = poolerFrontOf(instanceOf(""))?.listeners ?? [];
  expect(members).toMatchObject({ addresses: [{ port: 13_307 }], allows: { by: "network", cidrs: [] } });
});

test("a disabled pooler has a companion that must not run", () => {
  const enabled = instanceOf("first");
  const { pooler: _, ...disabled } = enabled.spec;
  expect(poolerCompanion(enabled)).toMatchObject({ name: "pooler", isOptional: true, isEnabled: true });
  expect(poolerCompanion({ ...enabled, spec: disabled })).toMatchObject({ name: "pooler", isEnabled: false });
});
