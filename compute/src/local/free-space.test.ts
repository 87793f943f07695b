import { expect, it } from "vitest";
import { admitForWarmPool, admitDisk, admitRoot } from "./free-space.ts";

const gib = 1024 ** 3;
const space = (freeGib: number, pendingGib = 0) => ({
  freeBytes: freeGib * gib,
  totalBytes: 100 * gib,
  pendingWriteBytes: pendingGib * gib,
});

// biome-ignore format: a table
it.each([
  ["a disk that promises more than is free now",          50,  space(10),     undefined],
  ["a disk larger than the host's",                       101, space(90),     "The host's disk has 100.0 GiB in all; 101.0 GiB are requested."],
  ["a host below its reserve",                            1,   space(5),      "The host's disk is too full: 5.0 GiB are free, and a new machine needs 5.3 GiB."],
  ["a host whose space is expected by younger machines",  1,   space(7, 2),   "The host's disk is too full: 7.0 GiB are free, and a new machine needs 7.3 GiB."],
] as const)("admits by the figures: %s", (_, diskGib, facts, reason) => {
  const admission = admitDisk(diskGib * gib, facts);
  expect(admission.admitted ? undefined : admission.reason).toBe(reason);
});

const pool = (freeGib: number, recent = 0) => ({
  totalBytes: 20 * gib,
  freeBytes: freeGib * gib,
  pendingWriteBytes: (recent * gib) / 4,
});

// biome-ignore format: a table
it.each([
  ["as large as the whole pool, however little is free", 20, pool(2),    undefined],
  ["larger than the pool",                               21, pool(20),   "The host's storage pool has 20.0 GiB in all; a root of 21.0 GiB is requested."],
  ["where a pool is full but for its reserve",           4,  pool(0.2),  "The host's storage pool is too full: 0.2 GiB of 20.0 GiB are free, and a new machine needs 1.3 GiB."],
  ["where younger machines are yet to write",            4,  pool(2, 5), "The host's storage pool is too full: 2.0 GiB of 20.0 GiB are free, and a new machine needs 2.5 GiB."],
  ["where a small pool is full but for what btrfs keeps", 1, { ...pool(0.7), totalBytes: 4 * gib }, "The host's storage pool is too full: 0.7 GiB of 4.0 GiB are free, and a new machine needs 0.8 GiB."],
] as const)("admits a root by the figures: one %s", (_, rootGib, room, reason) => {
  const admission = admitRoot(rootGib * gib, room, gib / 4);
  expect(admission.admitted ? undefined : admission.reason).toBe(reason);
});

const memory = (availableGib: number) => ({ totalBytes: 16 * gib, availableBytes: availableGib * gib });

// biome-ignore format: a table
it.each([
  ["a host with room",                                       space(20),      memory(8), undefined],
  ["a disk that still takes what is wanted, but not more",   space(8),       memory(8), "The host has 8.0 GiB of free disk, which requested machines may need."],
  ["space that requested machines will write",     space(20, 15),  memory(8), "The host has 20.0 GiB of free disk, which requested machines may need."],
  ["a host short of memory",                                 space(20),      memory(2), "The host has 2.0 GiB of free memory."],
] as const)("admits a machine of the warm pool only with spare capacity: %s", (_, facts, free, reason) => {
  const admission = admitForWarmPool(facts, free);
  expect(admission.admitted ? undefined : admission.reason).toBe(reason);
});
