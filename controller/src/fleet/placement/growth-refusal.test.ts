import { expect, it } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { readyHost, rootedTier } from "@holdfast/testing/platform/ready-host.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { RootStorage } from "@holdfast/compute/local/host-facts.ts";
import type { MachineSize } from "../machine/machine.ts";
import { growthRefusal } from "./resize-machine.ts";
import type { HostObject } from "../host/host.ts";

const gib = 1024 ** 3;
const machine = (id: string, memoryGb: number, diskGb: number, owner: string | null = id): MachineObject =>
  runningMachine(id, {
    owner: owner === null ? null : { kind: "managed-service", id: owner },
    memoryBytes: memoryGb * gib,
    diskBytes: diskGb * gib,
    hostId: "a",
  });
const mine = machine("m", 4, 10);
const size = (memoryGb: number, diskGb: number, rootGb = 4): MachineSize => ({
  vcpu: 1,
  memoryBytes: memoryGb * gib,
  rootBytes: rootGb * gib,
  diskBytes: diskGb * gib,
});
/** 64 GiB of memory and 1,000 GiB of disk can be reserved. */
const host = readyHost("a", { memoryOvercommit: 1, diskOvercommit: 1 });
const rooted = (roots: Partial<RootStorage>, diskOvercommit = 1) =>
  readyHost("a", { diskOvercommit }, { tiers: [rootedTier(roots)] });
const shared = { fileSystem: "/dev/a" };
const [full, waiting] = [machine("n", 56, 980), machine("w", 56, 980, null)];

// biome-ignore format: a table
it.each<[string, MachineSize, HostObject, MachineObject[], RegExp | undefined]>([
  ["takes the last capacity",                  size(8, 20),  host,                                          [mine, full],          undefined],
  ["is refused one more of memory",             size(9, 20),  host,                                          [mine, full],          /9\.0 GiB of memory are requested, and 56\.0 GiB of 64\.0 GiB times 1 are reserved/],
  ["is refused one more of disk",               size(8, 21),  host,                                          [mine, full],          /21\.0 GiB of disk are requested, and 980\.0 GiB of 1000\.0 GiB times 1 are reserved/],
  ["does not count the warm pool",             size(60, 900), host,                                         [mine, waiting],       undefined],
  ["counts no machine of another host",         size(60, 900), host,                                         [{ ...full, spec: { ...full.spec, hostId: "b" } }], undefined],
  ["may shrink on an overcommitted host",      size(2, 10),  readyHost("a", { memoryOvercommit: 0.5 }),     [mine, full],          undefined],
  ["is checked only for what grows: disk",     size(4, 20),  readyHost("a", { memoryOvercommit: 0.5 }),     [mine, full],          undefined],
  ["is checked only for what grows: memory",   size(8, 10),  readyHost("a", {}, { diskFreeBytes: 1 }),      [mine, full],          undefined],
  ["needs free space besides a reservation",   size(4, 20),  readyHost("a", {}, { diskFreeBytes: gib }),    [mine],                /The host's disk is too full: 1\.0 GiB are free/],
  ["is larger than its host's whole disk",      size(4, 2_000), readyHost("a"),                              [mine],                /The host's disk has 1000\.0 GiB in all; 2000\.0 GiB are requested/],
  ["takes the last space for roots",           size(4, 10, 16), rooted({}),                               [mine, full],          undefined],
  ["is refused one more of root",               size(4, 10, 17), rooted({}),                               [mine, full],          /^17\.0 GiB of root are requested, and 4\.0 GiB of 20\.0 GiB times 1 are reserved\.$/],
  ["has a root larger than its host's pool",    size(4, 10, 21), rooted({}, 2),                            [mine],                /The host's storage pool has 20\.0 GiB in all; a root of 21\.0 GiB is requested/],
  ["needs no root if only its disk grows", size(4, 11),    rooted({ freeBytes: 0 }, 0.99),           [mine],                undefined],
  ["keeps its root with a smaller plan",        size(4, 11, 1),  rooted(shared),                           [mine, machine("n", 1, 982)], /15\.0 GiB of disk and root are requested, and 986\.0 GiB of 1000\.0 GiB/],
  ["takes of one storage for its root as well", size(4, 10, 8),  rooted(shared),                           [mine, machine("n", 1, 980)], /18\.0 GiB of disk and root are requested, and 984\.0 GiB of 1000\.0 GiB/],
  ["has a pool that is out of order",           size(4, 10, 8),  rooted({ problem: "It is gone." }),       [mine],                /^It is gone\.$/],
  ["is not limited by unreported roots",       size(4, 10, 99), host,                                     [mine],                undefined],
  ["grows on a cordoned host",                 size(8, 20),  readyHost("a", { cordoned: true }),            [mine],                undefined],
  ["is refused by an unreachable host",        size(8, 20),  readyHost("a", {}, {}, { state: "unreachable", reason: "No answer." }), [mine], /it is unreachable: No answer\./],
  ["is refused by a destroyed host",           size(8, 20),  readyHost("a", { destroyedAt: 1 }),            [mine],                /it was destroyed/],
])("a machine that grows %s", (_, request, on, machines, reason) => {
  const refused = growthRefusal(mine, request, on, machines);
  if (reason === undefined) expect(refused).toBeUndefined();
  else expect(refused).toMatch(reason);
});
