import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, it } from "vitest";
import type { Fleet } from "../fleet/fleet.ts";
import type { MachineObject } from "./machine.ts";
import { claimedMachine, createWaitingMachines, isFree } from "./waiting-machines.ts";

const now = 1_000_000;
const kind = { engine: "postgresql", version: "17", zone: "local", storageTier: "maxiops", image: "trixie-2" };
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
      diskBytes: 10,
      hostId: "local",
      power: "on",
      serverNames: [],
      ...spec,
    },
    status: { state: "waiting", reason: "", address: "127.99.0.1", enrollment: null, certificate: null },
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

describe("a machine is free", () => {
  // biome-ignore format: a table
  it.each([
    ["when it waits and its agent holds nothing",               waiting(),                 there,                true],
    ["but not when somebody owns it",                           waiting("m", { owner }),   there,                false],
    ["nor on its way out",                                      waiting("m", {}, true),    there,                false],
    ["nor while it is made",                                    inState("running"),        there,                false],
    ["nor when it was claimed",                                 inState("claimed"),        there,                false],
    ["nor without its agent",                                   waiting(),                 fleet(undefined),     false],
    ["nor before its agent had time to tell",                   waiting(),                 fleet(100),           false],
    ["nor when its agent holds an instance, whatever is stored", waiting(),                fleet(60_000, true),  false],
  ] as const)("%s", (_, machine, world, free) => {
    expect(isFree(machine, world, now)).toBe(free);
  });
});

describe("taking a waiting machine", () => {
  const stored = (objects: readonly MachineObject[]) => ({
    values: () => objects.map((object) => ({ object, modRevision: 1n }))[Symbol.iterator](),
  });
  const open = (objects: readonly MachineObject[], held = false) =>
    createWaitingMachines({ machines: stored(objects), fleet: there, held: () => held, now: () => now });
  const idOf = (taken: ReturnType<ReturnType<typeof open>["take"]>) => taken?.machine.object.metadata.id;

  it("gives each to one caller, and again to another when it was given back", () => {
    const machines = open([waiting("a"), waiting("b")]);
    const wanted = { ...kind, diskBytes: 20 };
    const first = machines.take(wanted);
    expect([idOf(first), idOf(machines.take(wanted)), idOf(machines.take(wanted))]).toEqual(["a", "b", undefined]);
    first?.giveBack();
    expect(idOf(machines.take(wanted))).toBe("a");
  });

  // biome-ignore format: a table
  it.each([
    ["of another engine",                  { ...kind, engine: "valkey", diskBytes: 20 }],
    ["of another version",                 { ...kind, version: "18", diskBytes: 20 }],
    ["in another zone",                    { ...kind, zone: "elsewhere", diskBytes: 20 }],
    ["with another kind of disk",          { ...kind, storageTier: "standard", diskBytes: 20 }],
    ["of another image",                   { ...kind, image: "trixie-1", diskBytes: 20 }],
    ["with a larger disk than is wanted",  { ...kind, diskBytes: 5 }],
  ])("gives none %s", (_, wanted) => {
    expect(open([waiting()]).take(wanted)).toBeUndefined();
  });

  it("gives any image to whoever has chosen none", () => {
    expect(idOf(open([waiting()]).take({ ...kind, image: "", diskBytes: 20 }))).toBe("m");
  });

  it("gives none while what is stored is in doubt", () => {
    expect(open([waiting()], true).take({ ...kind, diskBytes: 20 })).toBeUndefined();
  });

  it("makes it the owner's in all but id, address, image and identity", () => {
    const before = waiting();
    const spec = { ...before.spec, image: "", owner, vcpu: 2, diskBytes: 20, serverNames: ["a.example"] };
    const after = claimedMachine(before, { organizationId: "o", name: "n", spec }, now);
    expect(after.spec).toEqual({ ...spec, image: "trixie-2" });
    expect(after.metadata).toMatchObject({ id: "m", organizationId: "o", name: "n", generation: 2 });
    expect(after.status).toEqual({ ...before.status, state: "claimed" });
  });
});
