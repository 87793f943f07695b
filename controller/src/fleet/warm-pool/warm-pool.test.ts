import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, it } from "vitest";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import type { Fleet } from "../fleet.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { claimedMachine, createWarmPool, isFree } from "./warm-pool.ts";

const now = 1_000_000;
const gib = 1024 ** 3;
const kind = {
  software: { name: "postgresql", version: "17" },
  zone: "local",
  storageTier: "maxiops",
  image: "trixie-2",
};
const owner = { kind: "managed-service", id: "s" };

function waiting(id = "m", spec: Partial<MachineObject["spec"]> = {}, deleted = false): MachineObject {
  const metadata = { id, name: id, organizationId: "", generation: 1, createdAt: 0, updatedAt: 0 };
  return {
    metadata: { ...metadata, ...(deleted && { deletionRequestedAt: 1 }) },
    spec: {
      owner: null,
      ...kind,
      vcpu: 1,
      memoryBytes: 1,
      rootBytes: 1,
      diskBytes: 10,
      hostId: "local",
      apart: "preferred",
      power: "on",
      serverNames: [],
      ...spec,
    },
    status: {
      state: "waiting",
      reason: "",
      address: "127.99.0.1",
      publicAddress: "127.99.0.1",
      enrollment: null,
      certificate: null,
    },
  };
}

function fleet(sinceMs: number | undefined, holds = false): Pick<Fleet, "session" | "observation"> {
  const facts = { controllerId: "c", agentVersion: "1", agentDigest: "", keeperProtocol: 0, bootId: "b" };
  const instance = create(InstanceObservationSchema, { state: "stopped" });
  return {
    session: () => (sinceMs === undefined ? undefined : { ...facts, connectedAt: now - sinceMs }),
    observation: () => (holds ? { instance, observedAt: now, bootId: "b" } : undefined),
  };
}
const there = fleet(60_000);
const inState = (state: MachineObject["status"]["state"]) => {
  const machine = waiting();
  return { ...machine, status: { ...machine.status, state } };
};

describe("a machine of the pool", () => {
  // biome-ignore format: a table
  it.each([
    ["is free if it waits and its agent has no instance",       waiting(),                 there,                true],
    ["is not free if it has an owner",                          waiting("m", { owner }),   there,                false],
    ["is not free while it is deleted",                         waiting("m", {}, true),    there,                false],
    ["is not free while it is created",                         inState("running"),        there,                false],
    ["is not free if it was claimed",                           inState("claimed"),        there,                false],
    ["is not free without its agent",                           waiting(),                 fleet(undefined),     false],
    ["is not free before its agent could report",               waiting(),                 fleet(100),           false],
    ["is not free if its agent reports an instance",             waiting(),                fleet(60_000, true),  false],
  ] as const)("%s", (_, machine, observed, free) => {
    expect(isFree(machine, observed, now)).toBe(free);
  });
});

describe("taking a machine of the pool", () => {
  const stored = (objects: readonly MachineObject[]) => ({
    values: () => objects.map((object) => ({ object, modRevision: 1n }))[Symbol.iterator](),
    untilRevision: async () => undefined,
  });
  const open = (objects: readonly MachineObject[], paused = false, hosts = [readyHost("local")]) => {
    const get = (id: string) =>
      hosts.filter(({ metadata }) => metadata.id === id).map((object) => ({ object, modRevision: 1n }))[0];
    return createWarmPool({
      machines: stored(objects),
      hosts: { get, getCurrent: async (id) => get(id) },
      fleet: there,
      isPaused: () => paused,
      now: () => now,
    });
  };
  const desired = (more: Partial<MachineSpecObject> = {}): MachineSpecObject => ({
    ...waiting().spec,
    hostId: null,
    image: "",
    owner,
    diskBytes: 20,
    ...more,
  });
  const idOf = async (taken: ReturnType<ReturnType<typeof open>["take"]>) => (await taken)?.machine.object.metadata.id;

  it("gives each machine to one caller, and to another after its release", async () => {
    const machines = open([waiting("a"), waiting("b")]);
    const callers = [1, 2, 3].map(() => machines.take(desired()));
    expect(await Promise.all(callers.map(idOf))).toEqual(["a", "b", undefined]);
    (await callers[0])?.release();
    expect(await idOf(machines.take(desired()))).toBe("a");
  });

  // biome-ignore format: a table
  it.each([
    ["with other software",                { software: { name: "valkey", version: "17" } }],
    ["of another version",                 { software: { name: "postgresql", version: "18" } }],
    ["in another zone",                    { zone: "elsewhere" }],
    ["with another kind of disk",          { storageTier: "standard" }],
    ["of another image",                   { image: "trixie-1" }],
    ["with a larger disk than requested",  { diskBytes: 5 }],
    ["for more memory than its host has",  { memoryBytes: 129 * gib }],
  ])("gives none %s", async (_, more) => {
    expect(await open([waiting()]).take(desired(more))).toBeUndefined();
  });

  it.each([
    ["is cordoned", readyHost("local", { cordoned: true })],
    ["is unreachable", readyHost("local", {}, {}, { state: "unreachable" })],
    ["is not registered", readyHost("another")],
  ])("gives none of a host that %s", async (_, host) => {
    expect(await open([waiting()], false, [host]).take(desired())).toBeUndefined();
  });

  it("prefers a host without machines of the same service", async () => {
    const hosts = [readyHost("local"), readyHost("far")];
    const peer = { ...waiting("peer", { owner }), status: inState("running").status };
    const [near, far] = [waiting("near"), waiting("far", { hostId: "far" })];
    expect(await idOf(open([peer, near, far], false, hosts).take(desired()))).toBe("far");
    expect(await idOf(open([peer, near], false, hosts).take(desired()))).toBe("near");
    expect(await open([peer, near], false, hosts).take(desired({ apart: "required" }))).toBeUndefined();
  });

  it("matches any image if the request has none", async () => {
    expect(await idOf(open([waiting()]).take(desired({ image: "" })))).toBe("m");
  });

  it("reserves capacity on a host with a reservation limit only", async () => {
    const bounded = (await open([waiting()]).take(desired()))?.reservation;
    expect(bounded?.after.status.placements).toBe((bounded?.of.object.status.placements ?? 0) + 1);
    const unbounded = [readyHost("local", { memoryOvercommit: null, diskOvercommit: null })];
    expect((await open([waiting()], false, unbounded).take(desired()))?.reservation).toBeUndefined();
  });

  it("gives none while automation is paused", async () => {
    expect(await open([waiting()], true).take(desired())).toBeUndefined();
  });

  it("gives it the owner's spec, except for id, host, addresses, image and certificate", () => {
    const before = waiting();
    const spec = { ...before.spec, hostId: null, image: "", owner, vcpu: 2, diskBytes: 20, serverNames: ["a.example"] };
    const after = claimedMachine(before, { organizationId: "o", name: "n", spec }, now);
    expect(after.spec).toEqual({ ...spec, hostId: "local", image: "trixie-2" });
    expect(after.metadata).toMatchObject({ id: "m", organizationId: "o", name: "n", generation: 2 });
    expect(after.status).toEqual({ ...before.status, state: "claimed" });
  });
});
