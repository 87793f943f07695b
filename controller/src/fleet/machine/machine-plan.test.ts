import { describe, expect, it } from "vitest";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import type { MachineObject } from "./machine.ts";
import { isNextOutcome } from "./machine-snapshot.ts";
import {
  redialTimeoutMs,
  type ObservedMachine,
  planMachine,
  foundEvent,
  restartDelayMs,
  silenceTimeoutMs,
} from "./machine-plan.ts";

const now = 1_000_000;
const running: MachineFacts = {
  id: "m",
  state: "running",
  address: "127.99.0.1",
  publicAddress: "127.99.0.1",
  diskBytes: 10,
  plan: { vcpu: 1, memoryBytes: 1 },
  image: "trixie-1",
  hasData: true,
  starts: 1,
  snapshots: [],
};
const stopped: MachineFacts = { ...running, state: "stopped" };

function machine(power: "on" | "off", deleted = false): MachineObject {
  return {
    metadata: {
      id: "m",
      name: "m",
      organizationId: "o",
      generation: 1,
      createdAt: 0,
      updatedAt: 0,
      ...(deleted && { deletionRequestedAt: 1 }),
    },
    spec: {
      owner: { kind: "managed-service", id: "s" },
      software: { name: "postgresql", version: "17" },
      image: "trixie-1",
      vcpu: 1,
      memoryBytes: 1,
      rootBytes: 4,
      diskBytes: 10,
      zone: "local",
      storageTier: "maxiops",
      hostId: "local",
      apart: "preferred",
      power,
      serverNames: [],
    },
    status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
  };
}

const ofImage = (power: "on" | "off", image: string): MachineObject => {
  const object = machine(power);
  return { ...object, spec: { ...object.spec, image } };
};

const ofKernel = (power: "on" | "off", guestKernel?: string): MachineObject => {
  const object = machine(power);
  return { ...object, spec: { ...object.spec, kind: "virtual_machine", ...(guestKernel && { guestKernel }) } };
};

const unowned = (): MachineObject => {
  const object = machine("on");
  return { ...object, spec: { ...object.spec, owner: null } };
};

const unplaced = (deleted = false): MachineObject => {
  const object = machine("on", deleted);
  return { ...object, spec: { ...object.spec, hostId: null } };
};

const observed = (facts: MachineFacts | undefined, more: Partial<ObservedMachine> = {}): ObservedMachine => ({
  facts,
  connectedMs: 60_000,
  silentMs: 0,
  crashesAgoMs: [],
  enrollmentDelivered: true,
  now,
  uptimeMs: 60_000,
  controllers: ["10.0.0.1:1"],
  caFingerprint: "new",
  ...more,
});

describe("the plan of a machine", () => {
  // biome-ignore format: a table
  it.each([
    ["creates and starts a missing machine",        machine("on"),        observed(undefined),                       ["create", "start"]],
    ["chooses a host before creation",              unplaced(),           observed(undefined),                       ["place"]],
    ["deletes the object of one never placed",      unplaced(true),       observed(undefined),                       ["deleteObject"]],
    ["creates one with power off, and leaves it off",  machine("off"),       observed(undefined),                       ["create"]],
    ["finishes a partly created machine",           machine("on"),        observed({ ...stopped, address: "" }),     ["create", "start"]],
    ["starts a stopped machine",                    machine("on"),        observed(stopped),                         ["start"]],
    ["leaves a running machine alone",              machine("on"),        observed(running),                         []],
    ["stops a running machine with power off",      machine("off"),       observed(running),                         ["stop"]],
    ["leaves a stopped machine with power off alone",  machine("off"),       observed(stopped),                         []],
    ["grows a disk that is too small",              machine("on"),        observed({ ...running, diskBytes: 5 }),    ["growDisk"]],
    ["resizes to the owner's plan",                 machine("on"),        observed({ ...running, plan: { vcpu: 2, memoryBytes: 1 } }), ["resize"]],
    ["lets a root grow with the plan",              machine("on"),        observed({ ...running, plan: { ...running.plan, rootBytes: 3 } }), ["resize"]],
    ["never shrinks a root",                        machine("on"),        observed({ ...running, plan: { ...running.plan, rootBytes: 5 } }), []],
    ["records the image that the provider chose",   ofImage("on", ""),    observed(running),                         ["recordImage"]],
    ["records no image without node images", ofImage("on", ""), observed({ ...running, image: "" }),   []],
    ["replaces the image before a start", ofImage("on", "trixie-2"), observed(stopped),          ["replaceImage", "start"]],
    ["replaces no image while power is off",        ofImage("off", "trixie-2"), observed(stopped),                  []],
    ["replaces no image of a running machine",   ofImage("on", "trixie-2"), observed(running),                   []],
    ["records the kernel that a virtual machine booted from", ofKernel("on"), observed({ ...running, guestKernel: "guest-1" }), ["recordGuestKernel"]],
    ["replaces the kernel before a start", ofKernel("on", "guest-2"), observed({ ...stopped, guestKernel: "guest-1" }), ["replaceGuestKernel", "start"]],
    ["does not replace the same kernel", ofKernel("on", "guest-1"), observed({ ...stopped, guestKernel: "guest-1" }), ["start"]],
    ["replaces no kernel while power is off", ofKernel("off", "guest-2"), observed({ ...stopped, guestKernel: "guest-1" }), []],
    ["replaces no kernel of a running machine",    ofKernel("on", "guest-2"), observed({ ...running, guestKernel: "guest-1" }), []],
    ["replaces no kernel of a container", ofKernel("on", "guest-2"), observed(stopped),                 ["start"]],
    ["creates one for the warm pool",                unowned(),            observed(undefined),                       ["create", "start"]],
    ["delays the warm pool after the start",         unowned(),            observed(undefined, { uptimeMs: 1 }),      []],
    ["starts a machine with an owner immediately",         machine("on"),        observed(stopped, { uptimeMs: 1 }),        ["start"]],
    ["adopts a running machine of the pool",         unowned(),            observed(running, { uptimeMs: 1 }),        []],
    ["destroys a deleted machine",                   machine("on", true),  observed(running),                         ["destroy", "deleteObject"]],
    ["deletes the object of a destroyed machine",    machine("on", true),  observed(undefined),                       ["deleteObject"]],
    ["restarts immediately after the first crash",         machine("on"),        observed(stopped, { crashesAgoMs: [0] }),      ["start"]],
    ["waits after the second crash",                    machine("on"),        observed(stopped, { crashesAgoMs: [5_000, 0] }),   []],
    ["waits for an agent that was disconnected just now",   machine("on"),       observed(running, { connectedMs: undefined }),   []],
    ["enrolls an agent again that is silent for long", machine("on"),       observed(running, { connectedMs: undefined, silentMs: silenceTimeoutMs }), ["enroll"]],
  ] as const)("%s", (_, object, observed, kinds) => {
    expect(planMachine(object, observed).steps.map(({ kind }) => kind)).toEqual(kinds);
  });

  it("plans again when a restart is due, and while a machine is silent", () => {
    expect(planMachine(machine("on"), observed(stopped, { crashesAgoMs: [5_000, 0] })).recheckInMs).toBe(1_000);
    expect(planMachine(machine("on"), observed(running, { connectedMs: undefined })).recheckInMs).toBe(
      silenceTimeoutMs,
    );
    expect(planMachine(machine("on"), observed(running)).recheckInMs).toBeNull();
  });

  it("plans again for a pooled machine when its agent must have reported", () => {
    expect(planMachine(unowned(), observed(running, { connectedMs: 500 }))).toEqual({ steps: [], recheckInMs: 1_501 });
    expect(planMachine(unowned(), observed(running, { connectedMs: 2_001 })).recheckInMs).toBeNull();
    expect(planMachine(machine("on"), observed(running, { connectedMs: 500 })).recheckInMs).toBeNull();
  });

  it("does not enroll an agent twice while the first enrollment is valid", () => {
    const object = machine("on");
    const enrollment = { tokenHash: "h", expiresAt: now + 1 };
    const waiting = { ...object, status: { ...object.status, enrollment } };
    const silent = observed(running, { connectedMs: undefined, silentMs: silenceTimeoutMs });
    expect(planMachine(waiting, silent).steps).toEqual([]);
    const spent = { ...object, status: { ...object.status, enrollment: { ...enrollment, spentBy: "k" } } };
    expect(planMachine(spent, silent).steps).toEqual([{ kind: "enroll" }]);
  });

  it("enrolls an agent again whose first enrollment may not have been delivered", () => {
    const object = machine("on");
    const enrollment = { tokenHash: "h", expiresAt: now + 600_000 };
    const waiting = { ...object, status: { ...object.status, enrollment } };
    const silent = (silentMs: number) =>
      planMachine(waiting, observed(running, { connectedMs: undefined, silentMs, enrollmentDelivered: false }));
    expect(silent(silenceTimeoutMs - 1).steps).toEqual([]);
    expect(silent(silenceTimeoutMs).steps).toEqual([{ kind: "enroll" }]);
  });

  it.each([
    ["the current authority", { caFingerprint: "new" }, []],
    ["a previous authority", { caFingerprint: "old" }, [{ kind: "enroll" }]],
    ["an unknown authority", {}, []],
    ["a previous authority, with a spent token", { caFingerprint: "old", spentBy: "key" }, []],
  ])("plans for a silent machine whose enrollment names %s", (_, delivered, expected) => {
    const object = machine("on");
    const enrollment = { tokenHash: "h", expiresAt: now + 600_000, ...delivered };
    const waiting = { ...object, status: { ...object.status, enrollment } };
    expect(
      planMachine(waiting, observed(running, { connectedMs: undefined, silentMs: redialTimeoutMs })).steps,
    ).toEqual(expected);
  });

  it("enrolls a silent machine soon if none of its controllers exists any more", () => {
    const enrolledWith = (...controllers: string[]): MachineObject => {
      const object = machine("on");
      return {
        ...object,
        status: { ...object.status, enrollment: { tokenHash: "h", expiresAt: now + 1, controllers } },
      };
    };
    const silent = (silentMs: number, ...controllers: string[]) =>
      planMachine(
        enrolledWith("10.0.0.1:1", "10.0.0.2:1"),
        observed(running, { connectedMs: undefined, silentMs, controllers }),
      );
    expect(silent(redialTimeoutMs - 1, "10.0.0.3:1")).toEqual({ steps: [], recheckInMs: redialTimeoutMs });
    expect(silent(redialTimeoutMs, "10.0.0.3:1").steps).toEqual([{ kind: "enroll" }]);
    expect(silent(redialTimeoutMs, "10.0.0.3:1", "10.0.0.2:1").steps).toEqual([]);
    expect(silent(redialTimeoutMs).steps).toEqual([]);
  });
});

it("restarts with a back-off of at most a minute", () => {
  const delays = [0, 1, 2, 3, 4, 20].map((count) => restartDelayMs(Array.from({ length: count }, () => 0)));
  expect(delays).toEqual([0, 0, 1_000, 2_000, 4_000, 60_000]);
  expect(restartDelayMs([5_000, 5_000])).toBe(0);
});

describe("a snapshot of the data", () => {
  const desired = (restore: boolean, noted?: "taken" | "none" | "restored", name = "op-1"): MachineObject => {
    const { spec, status, ...rest } = machine("on");
    return {
      ...rest,
      spec: { ...spec, image: "trixie-2", snapshot: { name: "op-1", restore } },
      status: { ...status, ...(noted && { snapshot: { name, outcome: noted, reason: "" } }) },
    };
  };
  const kindsOf = (object: MachineObject, facts: MachineFacts) =>
    planMachine(object, observed(facts)).steps.map(({ kind }) => kind);
  const withSnapshot = { ...stopped, snapshots: ["op-1"] };

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, MachineObject, MachineFacts, string[]]>([
    ["is taken before the image is replaced",             desired(false),                stopped, ["takeSnapshot", "replaceImage", "start"]],
    ["is not taken again",                               desired(false, "taken"),       withSnapshot,    ["replaceImage", "start"]],
    ["that could not be taken does not prevent a start", desired(true, "none"),         stopped, ["replaceImage", "start"]],
    ["is restored before the start",                     desired(true, "taken"),        withSnapshot,    ["restoreSnapshot", "replaceImage", "start"]],
    ["is restored once",                                 desired(true, "restored"),     withSnapshot,    ["replaceImage", "start"]],
    ["that is missing does not prevent a start",         desired(true, "taken"),        stopped, ["recordMissingSnapshot", "replaceImage", "start"]],
    ["is not restored if nothing was started since",     desired(true),                 stopped, ["replaceImage", "start"]],
    ["of another operation does not count",              desired(false, "taken", "op-0"), stopped, ["takeSnapshot", "replaceImage", "start"]],
    ["is ignored while the machine runs",                desired(true, "taken"),        { ...running, image: "trixie-1", snapshots: ["op-1"] }, []],
  ])("%s", (_name, object, facts, kinds) => {
    expect(kindsOf(object, facts)).toEqual(kinds);
  });

  it("is removed if it is not requested, while the machine runs as well", () => {
    const facts = { ...running, image: "trixie-2", snapshots: ["op-0", "op-1"] };
    expect(planMachine(desired(false, "taken"), observed(facts)).steps).toEqual([
      { kind: "removeSnapshot", name: "op-0" },
    ]);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, number, number, string[], number | null]>([
    ["immediately without an earlier attempt",        0, 0,           ["op-0"], null],
    ["not before the back-off is over",        1, now - 5_000, [],       10_000],
    ["after the back-off",                     1, now - 15_000, ["op-0"], null],
    ["with a growing back-off",                3, now - 50_000, [],       10_000],
    ["at least once an hour",                  40, now - 3_600_000, ["op-0"], null],
  ])("whose removal failed is removed %s", (_name, tries, triedAt, names, recheckInMs) => {
    const object = machine("on");
    const leftSnapshots = tries === 0 ? [] : [{ name: "op-0", reason: "Why.", tries, triedAt }];
    const planned = planMachine({ ...object, status: { ...object.status, staleSnapshots: leftSnapshots } }, observed({ ...running, snapshots: ["op-0"] }));
    expect(planned.steps).toEqual(names.map((name) => ({ kind: "removeSnapshot", name })));
    expect(planned.recheckInMs).toBe(recheckInMs);
  });

  it("that no longer exists loses its record at the next attempt", () => {
    const object = machine("on");
    const leftSnapshots = [{ name: "op-0", reason: "Why.", tries: 1, triedAt: now - 15_000 }];
    const planned = planMachine(
      { ...object, status: { ...object.status, staleSnapshots: leftSnapshots } },
      observed(running),
    );
    expect(planned.steps).toEqual([{ kind: "removeSnapshot", name: "op-0" }]);
  });

  it("is removed after all other steps", () => {
    expect(kindsOf(machine("on"), { ...stopped, snapshots: ["op-0"] })).toEqual(["start", "removeSnapshot"]);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, MachineObject, "taken" | "none" | "restored", boolean]>([
    ["taken",                                        desired(false),             "taken",    true],
    ["none",                                         desired(false),             "none",     true],
    ["taken, after none",                            desired(false, "none"),     "taken",    false],
    ["none, after taken",                            desired(false, "taken"),    "none",     false],
    ["taken, when a restore is requested",           desired(true),              "taken",    false],
    ["restored",                                     desired(true, "taken"),     "restored", true],
    ["restored, without a request",                  desired(false, "taken"),    "restored", false],
    ["taken, after restored",                        desired(true, "restored"),  "taken",    false],
    ["restored, twice",                              desired(true, "restored"),  "restored", false],
  ])("may be recorded as %s: %#", (_name, object, outcome, may) => {
    expect(isNextOutcome(object, { name: "op-1", outcome, reason: "" })).toBe(may);
    expect(isNextOutcome(object, { name: "op-9", outcome, reason: "" })).toBe(false);
  });
});

describe("a machine that ended five times within ten minutes", () => {
  const often = { crashesAgoMs: [400_000, 300_000, 200_000, 100_000, 0] };

  // biome-ignore format: a table
  it.each([
    ["has failed before it is started again",        machine("on"),  "stopped", undefined, "failed"],
    ["has failed until its agent connects",          machine("on"),  "running", undefined, "failed"],
    ["runs once its agent is connected",             machine("on"),  "running", 5_000,     "foundRunning"],
  ] as const)("%s", (_, object, state, connectedMs, event) => {
    expect(foundEvent(object, state, { ...often, connectedMs })).toBe(event);
  });

  it("counts fewer ends as a restart", () => {
    const once = { crashesAgoMs: [0], connectedMs: undefined };
    expect(foundEvent(machine("on"), "stopped", once)).toBeUndefined();
    expect(foundEvent(machine("on"), "running", once)).toBe("foundRunning");
    expect(foundEvent(machine("off"), "stopped", once)).toBe("foundStopped");
  });
});
