import { expect, it } from "vitest";
import { runningMachine } from "../../../test/support/machine-object.ts";
import { readyHost } from "../../../test/support/ready-host.ts";
import type { MachineObject } from "../machine/machine.ts";
import { growthRefusal, type MachineSize } from "./growth-refusal.ts";
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
const size = (memoryGb: number, diskGb: number): MachineSize => ({
  vcpu: 1,
  memoryBytes: memoryGb * gib,
  rootBytes: 4 * gib,
  diskBytes: diskGb * gib,
});
/** 64 GiB of memory and 1,000 GiB of disk to promise. */
const host = readyHost("a", { memoryOvercommit: 1, diskOvercommit: 1 });
const [full, waiting] = [machine("n", 56, 980), machine("w", 56, 980, null)];

// biome-ignore format: a table
it.each<[string, MachineSize, HostObject, MachineObject[], RegExp | undefined]>([
  ["takes the last room there is",              size(8, 20),  host,                                          [mine, full],          undefined],
  ["is refused one more of memory",             size(9, 20),  host,                                          [mine, full],          /9\.0 GiB of memory were asked for, and 56\.0 GiB of 64\.0 GiB times 1 are promised/],
  ["is refused one more of disk",               size(8, 21),  host,                                          [mine, full],          /21\.0 GiB of disk were asked for, and 980\.0 GiB of 1000\.0 GiB times 1 are promised/],
  ["takes what only waiting machines hold",     size(60, 900), host,                                         [mine, waiting],       undefined],
  ["counts no machine of another host",         size(60, 900), host,                                         [{ ...full, spec: { ...full.spec, hostId: "b" } }], undefined],
  ["may shrink where too much was promised",    size(2, 10),  readyHost("a", { memoryOvercommit: 0.5 }),     [mine, full],          undefined],
  ["is asked for what grows alone: disk",       size(4, 20),  readyHost("a", { memoryOvercommit: 0.5 }),     [mine, full],          undefined],
  ["is asked for what grows alone: memory",     size(8, 10),  readyHost("a", {}, { diskFreeBytes: 1 }),      [mine, full],          undefined],
  ["needs room that is free, besides promised", size(4, 20),  readyHost("a", {}, { diskFreeBytes: gib }),    [mine],                /The host's disk is too full: 1\.0 GiB are free/],
  ["is larger than its host's whole disk",      size(4, 2_000), readyHost("a"),                              [mine],                /The host's disk has 1000\.0 GiB in all; 2000\.0 GiB were asked for/],
  ["grows where new machines are kept away",    size(8, 20),  readyHost("a", { cordoned: true }),            [mine],                undefined],
  ["waits for a host that does not answer",     size(8, 20),  readyHost("a", {}, {}, { state: "unreachable", reason: "No answer." }), [mine], /it is unreachable: No answer\./],
  ["is lost with its host",                     size(8, 20),  readyHost("a", { destroyedAt: 1 }),            [mine],                /it was destroyed/],
])("a machine that grows %s", (_, wanted, on, machines, reason) => {
  const refused = growthRefusal(mine, wanted, on, machines);
  if (reason === undefined) expect(refused).toBeUndefined();
  else expect(refused).toMatch(reason);
});
