import { describe, expect, it } from "vitest";
import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import type { MachineObject } from "./machine.ts";
import { mayNote } from "./machine-snapshot.ts";
import { lostAfterMs, type ObservedMachine, planMachine, restartDelayMs, silentTooLongMs } from "./machine-plan.ts";

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
      engine: "postgresql",
      version: "17",
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
  deathsAgoMs: [],
  knowsControllers: true,
  now,
  atWorkMs: 60_000,
  controllers: ["10.0.0.1:1"],
  caFingerprint: "new",
  ...more,
});

describe("the plan of a machine", () => {
  // biome-ignore format: a table
  it.each([
    ["makes and starts what is not there",          machine("on"),        observed(undefined),                       ["create", "start"]],
    ["chooses a host before anything is made",      unplaced(),           observed(undefined),                       ["place"]],
    ["forgets what was never placed",               unplaced(true),       observed(undefined),                       ["forget"]],
    ["makes what is to be off, and leaves it off",  machine("off"),       observed(undefined),                       ["create"]],
    ["finishes what is half made",                  machine("on"),        observed({ ...stopped, address: "" }),     ["create", "start"]],
    ["starts what is stopped",                      machine("on"),        observed(stopped),                         ["start"]],
    ["leaves alone what runs, whoever started it",  machine("on"),        observed(running),                         []],
    ["stops what is to be off",                     machine("off"),       observed(running),                         ["stop"]],
    ["leaves off what is off",                      machine("off"),       observed(stopped),                         []],
    ["grows a disk that is too small",              machine("on"),        observed({ ...running, diskBytes: 5 }),    ["growDisk"]],
    ["gives a machine the plan of its owner",       machine("on"),        observed({ ...running, plan: { vcpu: 2, memoryBytes: 1 } }), ["resize"]],
    ["lets a root grow with the plan",              machine("on"),        observed({ ...running, plan: { ...running.plan, rootBytes: 3 } }), ["resize"]],
    ["and leaves a larger one as it is",            machine("on"),        observed({ ...running, plan: { ...running.plan, rootBytes: 5 } }), []],
    ["notes the image that the provider chose",     ofImage("on", ""),    observed(running),                         ["keepImage"]],
    ["has no image to note where the host's engines run", ofImage("on", ""), observed({ ...running, image: "" }),   []],
    ["puts another image under what is about to be started", ofImage("on", "trixie-2"), observed(stopped),          ["replaceImage", "start"]],
    ["but not under what stays off",                ofImage("off", "trixie-2"), observed(stopped),                  []],
    ["nor under what runs",                     ofImage("on", "trixie-2"), observed(running),                   []],
    ["notes the kernel that a virtual machine booted from", ofKernel("on"), observed({ ...running, guestKernel: "guest-1" }), ["keepGuestKernel"]],
    ["has a virtual machine boot from another kernel at its start", ofKernel("on", "guest-2"), observed({ ...stopped, guestKernel: "guest-1" }), ["replaceGuestKernel", "start"]],
    ["and from the one that it has without a word", ofKernel("on", "guest-1"), observed({ ...stopped, guestKernel: "guest-1" }), ["start"]],
    ["but leaves alone the kernel of what stays off", ofKernel("off", "guest-2"), observed({ ...stopped, guestKernel: "guest-1" }), []],
    ["and of what runs",                            ofKernel("on", "guest-2"), observed({ ...running, guestKernel: "guest-1" }), []],
    ["has no kernel to give to a machine without one", ofKernel("on", "guest-2"), observed(stopped),                 ["start"]],
    ["makes what is to wait for an owner",          unowned(),            observed(undefined),                       ["create", "start"]],
    ["makes that only after what is somebody's",    unowned(),            observed(undefined, { atWorkMs: 1 }),      []],
    ["starts what is somebody's at once",           machine("on"),        observed(stopped, { atWorkMs: 1 }),        ["start"]],
    ["adopts what waits and runs",                  unowned(),            observed(running, { atWorkMs: 1 }),        []],
    ["destroys what is to be deleted",              machine("on", true),  observed(running),                         ["destroy", "forget"]],
    ["forgets what is gone",                        machine("on", true),  observed(undefined),                       ["forget"]],
    ["starts again at once after a first death",    machine("on"),        observed(stopped, { deathsAgoMs: [0] }),      ["start"]],
    ["waits after a second one",                    machine("on"),        observed(stopped, { deathsAgoMs: [5_000, 0] }),   []],
    ["waits for an agent that is away for a moment", machine("on"),       observed(running, { connectedMs: undefined }),   []],
    ["enrolls an agent anew that is silent for long", machine("on"),       observed(running, { connectedMs: undefined, silentMs: silentTooLongMs }), ["enroll"]],
  ] as const)("%s", (_, object, world, kinds) => {
    expect(planMachine(object, world).steps.map(({ kind }) => kind)).toEqual(kinds);
  });

  it("looks again when a restart is due, and at a silent machine", () => {
    expect(planMachine(machine("on"), observed(stopped, { deathsAgoMs: [5_000, 0] })).lookAgainMs).toBe(1_000);
    expect(planMachine(machine("on"), observed(running, { connectedMs: undefined })).lookAgainMs).toBe(silentTooLongMs);
    expect(planMachine(machine("on"), observed(running)).lookAgainMs).toBeNull();
  });

  it("looks again at one that nobody owns, when its agent must have told what it holds", () => {
    expect(planMachine(unowned(), observed(running, { connectedMs: 500 }))).toEqual({ steps: [], lookAgainMs: 1_501 });
    expect(planMachine(unowned(), observed(running, { connectedMs: 2_001 })).lookAgainMs).toBeNull();
    expect(planMachine(machine("on"), observed(running, { connectedMs: 500 })).lookAgainMs).toBeNull();
  });

  it("does not enroll an agent twice while the first enrollment is good", () => {
    const object = machine("on");
    const enrollment = { tokenHash: "h", expiresAt: now + 1 };
    const waiting = { ...object, status: { ...object.status, enrollment } };
    const silent = observed(running, { connectedMs: undefined, silentMs: silentTooLongMs });
    expect(planMachine(waiting, silent).steps).toEqual([]);
    const spent = { ...object, status: { ...object.status, enrollment: { ...enrollment, spentBy: "k" } } };
    expect(planMachine(spent, silent).steps).toEqual([{ kind: "enroll" }]);
  });

  it("enrolls an agent anew whose first enrollment may not have reached the machine", () => {
    const object = machine("on");
    const enrollment = { tokenHash: "h", expiresAt: now + 600_000 };
    const waiting = { ...object, status: { ...object.status, enrollment } };
    const silent = (silentMs: number) =>
      planMachine(waiting, observed(running, { connectedMs: undefined, silentMs, knowsControllers: false }));
    expect(silent(silentTooLongMs - 1).steps).toEqual([]);
    expect(silent(silentTooLongMs).steps).toEqual([{ kind: "enroll" }]);
  });

  it.each([
    ["the authority that signs", { caFingerprint: "new" }, []],
    ["one that signs no longer", { caFingerprint: "old" }, [{ kind: "enroll" }]],
    ["nobody knows which", {}, []],
    ["one that signs no longer, and has its certificate", { caFingerprint: "old", spentBy: "key" }, []],
  ])("enrolls a silent machine anew soon that was told to trust %s", (_, told, expected) => {
    const object = machine("on");
    const enrollment = { tokenHash: "h", expiresAt: now + 600_000, ...told };
    const waiting = { ...object, status: { ...object.status, enrollment } };
    expect(planMachine(waiting, observed(running, { connectedMs: undefined, silentMs: lostAfterMs })).steps).toEqual(
      expected,
    );
  });

  it("tells a silent machine soon where controllers are when none is where it was told", () => {
    const toldOf = (...controllers: string[]): MachineObject => {
      const object = machine("on");
      return {
        ...object,
        status: { ...object.status, enrollment: { tokenHash: "h", expiresAt: now + 1, controllers } },
      };
    };
    const silent = (silentMs: number, ...controllers: string[]) =>
      planMachine(
        toldOf("10.0.0.1:1", "10.0.0.2:1"),
        observed(running, { connectedMs: undefined, silentMs, controllers }),
      );
    expect(silent(lostAfterMs - 1, "10.0.0.3:1")).toEqual({ steps: [], lookAgainMs: lostAfterMs });
    expect(silent(lostAfterMs, "10.0.0.3:1").steps).toEqual([{ kind: "enroll" }]);
    expect(silent(lostAfterMs, "10.0.0.3:1", "10.0.0.2:1").steps).toEqual([]);
    expect(silent(lostAfterMs).steps).toEqual([]);
  });
});

it("waits longer after each death, at most a minute", () => {
  const delays = [0, 1, 2, 3, 4, 20].map((count) => restartDelayMs(Array.from({ length: count }, () => 0)));
  expect(delays).toEqual([0, 0, 1_000, 2_000, 4_000, 60_000]);
  expect(restartDelayMs([5_000, 5_000])).toBe(0);
});

describe("a snapshot of the data", () => {
  const wanted = (restore: boolean, noted?: "taken" | "none" | "restored", name = "op-1"): MachineObject => {
    const { spec, status, ...rest } = machine("on");
    return {
      ...rest,
      spec: { ...spec, image: "trixie-2", snapshot: { name: "op-1", restore } },
      status: { ...status, ...(noted && { snapshot: { name, outcome: noted, reason: "" } }) },
    };
  };
  const kindsOf = (object: MachineObject, facts: MachineFacts) =>
    planMachine(object, observed(facts)).steps.map(({ kind }) => kind);
  const kept = { ...stopped, snapshots: ["op-1"] };

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, MachineObject, MachineFacts, string[]]>([
    ["is taken before the other image comes under it", wanted(false),                stopped, ["takeSnapshot", "replaceImage", "start"]],
    ["is not taken again of what came after",          wanted(false, "taken"),       kept,    ["replaceImage", "start"]],
    ["that could not be taken is done without",        wanted(true, "none"),         stopped, ["replaceImage", "start"]],
    ["is gone back to before the start",               wanted(true, "taken"),        kept,    ["restoreSnapshot", "replaceImage", "start"]],
    ["is gone back to once",                           wanted(true, "restored"),     kept,    ["replaceImage", "start"]],
    ["that is gone keeps nothing from starting",       wanted(true, "taken"),        stopped, ["missSnapshot", "replaceImage", "start"]],
    ["is not needed where nothing was started since",  wanted(true),                 stopped, ["replaceImage", "start"]],
    ["of another time is none",                        wanted(false, "taken", "op-0"), stopped, ["takeSnapshot", "replaceImage", "start"]],
    ["has no meaning while the machine runs",          wanted(true, "taken"),        { ...running, image: "trixie-1", snapshots: ["op-1"] }, []],
  ])("%s", (_name, object, facts, kinds) => {
    expect(kindsOf(object, facts)).toEqual(kinds);
  });

  it("that nobody wants goes, and one that is wanted stays, while the machine runs as well", () => {
    const facts = { ...running, image: "trixie-2", snapshots: ["op-0", "op-1"] };
    expect(planMachine(wanted(false, "taken"), observed(facts)).steps).toEqual([
      { kind: "removeSnapshot", name: "op-0" },
    ]);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, number, number, string[], number | null]>([
    ["at once when that was never tried",      0, 0,           ["op-0"], null],
    ["not again before its time",              1, now - 5_000, [],       10_000],
    ["again then",                             1, now - 15_000, ["op-0"], null],
    ["later each time",                        3, now - 50_000, [],       10_000],
    ["once an hour at least",                  40, now - 3_600_000, ["op-0"], null],
  ])("that could not be removed is removed %s", (_name, tries, triedAt, names, lookAgainMs) => {
    const object = machine("on");
    const leftSnapshots = tries === 0 ? [] : [{ name: "op-0", reason: "Why.", tries, triedAt }];
    const planned = planMachine({ ...object, status: { ...object.status, leftSnapshots } }, observed({ ...running, snapshots: ["op-0"] }));
    expect(planned.steps).toEqual(names.map((name) => ({ kind: "removeSnapshot", name })));
    expect(planned.lookAgainMs).toBe(lookAgainMs);
  });

  it("that somebody else removed is forgotten when its time comes", () => {
    const object = machine("on");
    const leftSnapshots = [{ name: "op-0", reason: "Why.", tries: 1, triedAt: now - 15_000 }];
    const planned = planMachine({ ...object, status: { ...object.status, leftSnapshots } }, observed(running));
    expect(planned.steps).toEqual([{ kind: "removeSnapshot", name: "op-0" }]);
  });

  it("that nobody wants goes after everything else", () => {
    expect(kindsOf(machine("on"), { ...stopped, snapshots: ["op-0"] })).toEqual(["start", "removeSnapshot"]);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each<[string, MachineObject, "taken" | "none" | "restored", boolean]>([
    ["taken",                                        wanted(false),             "taken",    true],
    ["that there is none",                           wanted(false),             "none",     true],
    ["taken, too late for who went on without",      wanted(false, "none"),     "taken",    false],
    ["that there is none, where another has it",     wanted(false, "taken"),    "none",     false],
    ["taken, when the data are to go back already",  wanted(true),              "taken",    false],
    ["restored",                                     wanted(true, "taken"),     "restored", true],
    ["restored, where nobody asked for it",          wanted(false, "taken"),    "restored", false],
    ["taken, after they went back",                  wanted(true, "restored"),  "taken",    false],
    ["restored, twice",                              wanted(true, "restored"),  "restored", false],
  ])("is noted as %s: %#", (_name, object, outcome, may) => {
    expect(mayNote(object, { name: "op-1", outcome, reason: "" })).toBe(may);
    expect(mayNote(object, { name: "op-9", outcome, reason: "" })).toBe(false);
  });
});
