import { describe, expect, it } from "vitest";
import { createRandom } from "@holdfast/testing/random.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { readyHost, rootedTier } from "@holdfast/testing/platform/ready-host.ts";
import type { HostFacts, RootStorage, StorageTier } from "@holdfast/compute/local/host-facts.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { HostObject } from "../host/host.ts";
import { placeMachine, refusalOn, type PlacementRequest } from "./place-machine.ts";

const gib = 1024 ** 3;
const owner = { kind: "managed-service", id: "s" };
const request = (more: Partial<PlacementRequest> = {}): PlacementRequest => ({
  id: "new",
  owner,
  software: { name: "postgresql", version: "17" },
  image: "",
  zone: "local",
  storageTier: "maxiops",
  memoryBytes: 4 * gib,
  rootBytes: 4 * gib,
  diskBytes: 10 * gib,
  apart: "preferred",
  ...more,
});
let made = 0;
const machine = (
  hostId: string | null,
  more: Partial<MachineObject["spec"]> = {},
  address = "127.98.0.1",
): MachineObject => {
  const id = `m-${made++}`;
  const owner = { kind: "managed-service", id: `s-${id}` } as const;
  return runningMachine(id, { owner, memoryBytes: 4 * gib, diskBytes: 10 * gib, hostId, ...more }, address);
};
const many = (count: number, of: () => MachineObject) => Array.from({ length: count }, of);
const [a, b] = [readyHost("a"), readyHost("b")];
const tiers = [{ name: "standard", totalBytes: 100 * gib, freeBytes: 90 * gib }];
const noMemory = [...many(32, () => machine("a")), ...many(31, () => machine("b")), machine("b", {}, "")];
const publicly = (id: string, publicBlock: string, publicFree = 5) =>
  readyHost(id, {}, { publicBlock, publicTotal: 14, publicFree });
const rooted = (roots: Partial<RootStorage> = {}, diskOvercommit: number | null = 1) =>
  readyHost("a", { diskOvercommit }, { tiers: [rootedTier(roots)] });
const tooFull = readyHost("a", {}, { diskTotalBytes: 100 * gib, diskFreeBytes: 5.3 * gib });

describe("placing a machine", () => {
  // biome-ignore format: a table
  it.each<[string, PlacementRequest, HostObject[], MachineObject[], string]>([
    ["chooses the only host",                          request(),                          [a],                                  [],                              "a"],
    ["takes the one with the larger free share",       request(),                          [a, b],                               [machine("a")],                  "b"],
    ["counts reservations of machines not created yet",  request(),                          [a, b],                               [machine("b", {}, "")],          "a"],
    ["does not count the machine's own reservation",    request({ id: "m-x" }),             [a, b],                               [{ ...machine("a"), metadata: { ...machine("a").metadata, id: "m-x" } }, machine("b", { memoryBytes: 1 })], "a"],
    ["weighs disk like memory",                request(),                          [readyHost("a", {}, { diskFreeBytes: 100 * gib }), b], [machine("b")], "b"],
    ["takes the first by name of equals",              request(),                          [b, a],                               [],                              "a"],
    ["takes a large host before a small one",          request(),                          [readyHost("a", {}, { memoryTotalBytes: 8 * gib }), b], [],            "b"],
    ["chooses a host of the zone",                     request({ zone: "y" }),             [a, readyHost("y", { zone: "y" })],   [],                              "y"],
    ["skips a cordoned host",                    request(),                          [readyHost("a", { cordoned: true }), b], [machine("b")],               "b"],
    ["skips an unreachable host",           request(),                          [readyHost("a", {}, {}, { state: "unreachable" }), b], [machine("b")], "b"],
    ["skips a host without the version",            request(),                          [readyHost("a", {}, {}, { images: [] }), b], [machine("b")],           "b"],
    ["skips a host without the tier",            request(),                          [readyHost("a", {}, { tiers }), b],   [machine("b")],                  "b"],
    ["ignores the tier if a host reports no tiers",     request({ storageTier: "tape" }),   [a],                                  [],                              "a"],
    ["prefers a host without members of its service", request(),                          [a, b],                               [machine("a", { owner }), ...many(5, () => machine("b"))], "b"],
    ["chooses the same host if it is the only one",    request(),                          [a],                                  [machine("a", { owner })],       "a"],
    ["prefers the host with the fewest members", request(),                          [a, b],                               [machine("a", { owner }), machine("a", { owner }), machine("b", { owner })], "b"],
    ["chooses a host with the requested image",      request({ image: "trixie-1" }),     [a, readyHost("b", {}, { imageIds: ["trixie-1"] })], [machine("b")],  "b"],
    ["chooses a host with the members' image",    request(),                          [a, readyHost("b", {}, { imageIds: ["trixie-1"] })], [machine("b", { owner, image: "trixie-1" })], "b"],
    ["does not count the warm pool for an owner",        request({ memoryBytes: 120 * gib }), [a],                                 [machine("a", { owner: null, memoryBytes: 64 * gib })], "a"],
    ["skips a host without a free public address",  request(),                          [publicly("a", "203.0.113.16/28", 0), b], [machine("b")],               "b"],
    ["needs no public address for a machine that has one",  request({ isCreated: true }),          [publicly("a", "203.0.113.16/28", 0)], [],                              "a"],
    ["skips a host with a full pool for roots",   request(),                          [rooted({ freeBytes: gib }), b],      [machine("b")],                  "b"],
    ["weighs free space for roots like disk", request(),                         [rooted({ freeBytes: 2 * gib }), b],  [machine("b")],                  "b"],
    ["needs no root for a machine that has one",         request({ isCreated: true }),          [rooted({ freeBytes: gib })],         [],                              "a"],
    ["counts only free memory without a reservation limit", request({ memoryBytes: 500 * gib }), [readyHost("a", { memoryOvercommit: null })], many(50, () => machine("a")), "a"],
  ])("%s", (_, what, hosts, machines, expected) => {
    expect(placeMachine(what, hosts, machines).hostId).toBe(expected);
  });

  it("chooses the image of the owner's other machines, and none if the host has none", () => {
    const has = readyHost("a", {}, { imageIds: ["trixie-1"] });
    const others = [machine("b", { image: "trixie-2" }), machine("b", { owner, image: "trixie-1" })];
    expect(placeMachine(request(), [has], others)).toEqual({ hostId: "a", image: "trixie-1" });
    expect(placeMachine(request(), [has], others.slice(0, 1))).toEqual({ hostId: "a", image: "" });
  });

  it("chooses the kernel of the owner's other virtual machines, else the newest, none for containers", () => {
    const images = [
      { engine: "postgresql", version: "17", available: true, image: "trixie-3" },
      { engine: "linux", version: "guest", available: true, image: "guest-2" },
    ];
    const host = readyHost("a", {}, { imageIds: ["guest-1"], virtualMachineProblem: "" }, { images });
    const kind = "virtual_machine";
    const others = [machine("b", { owner, kind, guestKernel: "guest-1" })];
    expect(placeMachine(request({ kind }), [host], others)).toMatchObject({ guestKernel: "guest-1" });
    expect(placeMachine(request({ kind }), [host], [])).toMatchObject({ guestKernel: "guest-2" });
    expect(placeMachine(request(), [host], others)).not.toHaveProperty("guestKernel");
  });

  it("chooses the host's newest image, so that the next member gets the same one", () => {
    const images = [{ engine: "postgresql", version: "17", available: true, image: "trixie-3" }];
    expect(placeMachine(request(), [readyHost("a", {}, {}, { images })], [])).toEqual({
      hostId: "a",
      image: "trixie-3",
    });
  });

  // biome-ignore format: a table
  it.each<[string, PlacementRequest, HostObject[], MachineObject[], RegExp]>([
    ["a zone without a host",      request({ zone: "mars" }), [a],                                 [],                          /^No host is in zone mars\.$/],
    ["a zone with a destroyed host", request(),                 [readyHost("a", { destroyedAt: 1 })], [],                         /^No host is in zone local\.$/],
    ["reserved memory",    request(),                 [a, b],                              noMemory,                    /a: 4\.0 GiB of memory are requested, and 128\.0 GiB of 64\.0 GiB times 2 are reserved\. b: 4\.0 GiB/],
    ["a disk that is too full",    request(),                 [tooFull],                           [machine("a", {}, "")],      /a: The host's disk is too full: 5\.3 GiB are free, and a new machine needs 5\.5 GiB/],
    ["a disk that is too small",   request({ diskBytes: 2_000 * gib }), [a],                       [],                          /a: The host's disk has 1000\.0 GiB in all; 2000\.0 GiB are requested/],
    ["reserved disk",    request({ diskBytes: 800 * gib }), [readyHost("a", { diskOvercommit: 1 })], many(21, () => machine("a")), /a: 800\.0 GiB of disk are requested, and 210\.0 GiB of 1000\.0 GiB times 1 are reserved/],
    ["roots that are reserved",    request(),                 [rooted()],                          many(5, () => machine("a")), /a: 4\.0 GiB of root are requested, and 20\.0 GiB of 20\.0 GiB times 1 are reserved\.$/],
    ["a root larger than its pool", request({ rootBytes: 21 * gib }), [rooted({}, null)],          [],                          /a: The host's storage pool has 20\.0 GiB in all; a root of 21\.0 GiB is requested\.$/],
    ["a pool that is too full",    request(),                 [rooted({ freeBytes: 1.4 * gib }, null)], [machine("a", {}, "")], /a: The host's storage pool is too full: 1\.4 GiB of 20\.0 GiB are free, and a new machine needs 1\.5 GiB\.$/],
    ["a pool that is out of order", request(),                [rooted({ problem: "It is gone." })], [],                         /a: It is gone\.$/],
    ["every reason that there is", request(),                 [readyHost("a", { cordoned: true }), readyHost("b", { cordoned: true, drain: { requestedAt: 1, stopSingleNodes: false } }), readyHost("c", {}, {}, { state: "joining", reason: "The host has not connected yet." })], [], /a: it is cordoned\. b: it is being drained\. c: it is joining: The host has not connected yet\./],
    ["a version that a host lacks", request(),                [readyHost("a", {}, {}, { images: [{ engine: "postgresql", version: "17", available: false, reason: "no node image has it" }] })], [], /a: it has no postgresql 17: no node image has it/],
    ["an image that a host lacks", request(),                 [a],                                 [machine("z", { owner, image: "trixie-1" })], /a: it does not have the node image trixie-1 of the other members\./],
    ["a kind that a host lacks",   request({ kind: "virtual_machine" }), [readyHost("a", {}, { virtualMachineProblem: "It has no KVM." })], [], /a: It has no KVM\./],
    ["a kernel that a host lacks", request({ kind: "virtual_machine", guestKernel: "guest-1" }), [a], [], /a: it does not have the kernel guest-1 of the other members\./],
    ["storage that a host lacks",  request(),                 [readyHost("a", {}, { tiers })],     [],                          /a: it has no storage of tier maxiops, only standard\./],
    ["separate hosts, if they are required",       request({ apart: "required" }), [a],              [machine("a", { owner })],   /a: it has 1 other members, which must be on other hosts/],
    ["public addresses that are taken or promised", request(), [publicly("a", "203.0.113.16/28", 1)], [machine("a", {}, "")], /a: 14 of the 14 addresses of 203\.0\.113\.16\/28 are taken/],
    ["public addresses of two hosts", request(),              [publicly("a", "203.0.113.16/28"), publicly("b", "203.0.113.0/24")], [], /a: its public addresses 203\.0\.113\.16\/28 overlap the public addresses of host b\. b: its public addresses/],
    ["no more than ten of many",   request(),                 Array.from({ length: 12 }, (_, index) => readyHost(`h-${index}`, { cordoned: true })), [], /h-9: it is cordoned\. And 2 more\.$/],
  ])("tells of %s", (_, what, hosts, machines, reason) => {
    expect(placeMachine(what, hosts, machines).reason).toMatch(reason);
  });
});

const tierOf = (name: string, fileSystem?: string) => ({
  name,
  totalBytes: 100 * gib,
  freeBytes: 90 * gib,
  fileSystem,
});
const disks = (ofMaxiops?: string, ofStandard?: string) => {
  const facts = { tiers: [tierOf("maxiops", ofMaxiops), tierOf("standard", ofStandard)] } as Partial<HostFacts>;
  return readyHost("a", { diskOvercommit: 1 }, facts);
};

// biome-ignore format: a table
it.each<[string, HostObject, string, boolean]>([
  ["of the same tier count",                             disks("1", "2"), "maxiops",  false],
  ["of a tier on another disk do not",                   disks("1", "2"), "standard", true],
  ["of a tier on the same disk do",                      disks("1", "1"), "standard", false],
  ["of any tier count if file systems are unknown", disks(),        "standard", false],
])("reservations of disks %s", (_, host, storageTier, fits) => {
  const there = many(9, () => machine("a"));
  expect(refusalOn(request({ storageTier, diskBytes: 20 * gib }), host, there) === undefined).toBe(fits);
});

const shared = { fileSystem: "/dev/a", totalBytes: 1_000 * gib, freeBytes: 1_000 * gib };
const standard = { name: "standard", fileSystem: "/dev/b" };
const of = (...given: StorageTier[]) => readyHost("a", { diskOvercommit: 1 }, { tiers: given });

// biome-ignore format: a table
it.each<[string, HostObject, Partial<MachineObject["spec"]>, number, boolean]>([
  ["data and roots of one storage count together: the last space",  of(rootedTier(shared)), { diskBytes: 982 * gib }, 4, true],
  ["data and roots of one storage count together: one GiB more",            of(rootedTier(shared)), { diskBytes: 983 * gib }, 4, false],
  ["data do not count where roots are",                                     of(rootedTier()),       { diskBytes: 983 * gib }, 4, true],
  ["roots of another tier in the same pool count",                          of(rootedTier(), rootedTier({}, standard)), { storageTier: "standard", rootBytes: 17 * gib }, 4, false],
  ["roots of another tier in another pool do not",                          of(rootedTier(), rootedTier({ fileSystem: "pool q" }, standard)), { storageTier: "standard", rootBytes: 17 * gib }, 4, true],
  ["roots of another tier that are where data are count there",             of(rootedTier(), rootedTier(shared, standard)), { storageTier: "standard", rootBytes: 991 * gib }, 4, false],
  ["no root counts if the host reports no pool for roots",                             of({ ...standard, name: "maxiops", totalBytes: 1_000 * gib, freeBytes: 900 * gib }), { rootBytes: 5_000 * gib }, 5_000, true],
])("%s", (_, host, there, rootGb, fits) => {
  const refusal = refusalOn(request({ rootBytes: rootGb * gib }), host, [machine("a", there)]);
  expect(refusal === undefined).toBe(fits);
});

it("names disk and root in the refusal if they share the storage that is too small", () => {
  const there = [machine("a", { diskBytes: 983 * gib })];
  expect(placeMachine(request(), [of(rootedTier(shared))], there).reason).toMatch(
    /a: 14\.0 GiB of disk and root are requested, and 987\.0 GiB of 1000\.0 GiB times 1 are reserved\.$/,
  );
});

/** Random placements and removals, one after the other. */
it.each([1, 2, 3, 4, 5])(
  "never promises more than a host may, and refuses only when no host can take it (seed %i)",
  (seed) => {
    const { next: random } = createRandom(seed);
    const pick = (count: number) => Math.floor(random() * count);
    const hosts = Array.from({ length: 2 + pick(5) }, (_, index) =>
      readyHost(
        `h-${index}`,
        {
          zone: pick(3) === 0 ? "y" : "local",
          cordoned: pick(6) === 0,
          memoryOvercommit: 1 + pick(3),
          diskOvercommit: 2,
        },
        {
          memoryTotalBytes: (8 + pick(57)) * gib,
          tiers: [
            rootedTier(pick(2) === 0 ? {} : shared, { totalBytes: 200 * gib, freeBytes: (20 + pick(180)) * gib }),
          ],
        },
        pick(8) === 0 ? { state: "unreachable" } : {},
      ),
    );
    let machines: MachineObject[] = [];
    let [placed, refused] = [0, 0];
    for (let round = 0; round < 300; round += 1) {
      if (pick(4) === 0) machines = machines.filter(() => pick(5) !== 0);
      const next = machine(
        null,
        {
          owner: pick(5) === 0 ? null : { kind: "managed-service", id: `s-${pick(20)}` },
          zone: pick(3) === 0 ? "y" : "local",
          memoryBytes: (1 + pick(16)) * gib,
          rootBytes: (1 + pick(8)) * gib,
          diskBytes: (1 + pick(60)) * gib,
          apart: pick(4) === 0 ? "required" : "preferred",
        },
        pick(3) === 0 ? "" : "127.98.0.1",
      );
      const what = { ...next.spec, id: next.metadata.id };
      const { hostId } = placeMachine(what, hosts, machines);
      const able = hosts.filter(
        (host) => host.spec.zone === what.zone && refusalOn(what, host, machines) === undefined,
      );
      if (hostId === undefined) {
        refused += 1;
        expect(able).toEqual([]);
        continue;
      }
      placed += 1;
      expect(able.map(({ metadata }) => metadata.id)).toContain(hostId);
      machines.push({ ...next, spec: { ...next.spec, hostId } });
      const host = hosts.find(({ metadata }) => metadata.id === hostId) as HostObject;
      expect(host.spec).toMatchObject({ cordoned: false, zone: what.zone });
      expect(host.status.state).toBe("ready");
      const here = machines.filter(
        ({ spec }) => spec.hostId === hostId && (spec.owner !== null || what.owner === null),
      );
      const memory = here.reduce((sum, { spec }) => sum + spec.memoryBytes, 0);
      expect(memory).toBeLessThanOrEqual(
        (host.status.facts?.memoryTotalBytes ?? 0) * (host.spec.memoryOvercommit ?? 0),
      );
      const disk = here.reduce((sum, { spec }) => sum + spec.diskBytes, 0);
      const root = here.reduce((sum, { spec }) => sum + spec.rootBytes, 0);
      const [tier] = host.status.facts?.tiers ?? [];
      const isShared = tier?.fileSystem === tier?.roots?.fileSystem;
      expect(disk + (isShared ? root : 0)).toBeLessThanOrEqual((tier?.totalBytes ?? 0) * 2);
      if (!isShared) expect(root).toBeLessThanOrEqual((tier?.roots?.totalBytes ?? 0) * 2);
    }
    expect(placed).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(0);
  },
);
