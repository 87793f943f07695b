import type { HostFacts, RootStorage, StorageTier } from "@holdfast/compute/local/host-facts.ts";
import { type HostObject, type HostSpec, type HostStatus, newHost } from "@holdfast/controller/fleet/host/host.ts";

const gib = 1024 ** 3;

/** Report of a host with 64 GiB of memory and 1,000 GiB of disk, 900 of them free. */
export const testHostFacts: HostFacts = {
  provider: "process",
  memoryTotalBytes: 64 * gib,
  memoryFreeBytes: 60 * gib,
  diskTotalBytes: 1_000 * gib,
  diskFreeBytes: 900 * gib,
  tiers: [],
  version: "1",
  bootId: "b",
  addressBlock: "127.98",
  imageIds: [],
  publicBlock: "",
  publicTotal: 0,
  publicFree: 0,
};

/** A tier `maxiops` on a disk of 1,000 GiB, whose roots are in a pool `p` of 20 GiB; nothing is written to either. */
export function rootedTier(roots: Partial<RootStorage> = {}, tier: Partial<StorageTier> = {}): StorageTier {
  const pool = { totalBytes: 20 * gib, freeBytes: 20 * gib, firstBytes: gib / 4, fileSystem: "pool p", problem: "" };
  const disk = { name: "maxiops", totalBytes: 1_000 * gib, freeBytes: 1_000 * gib, fileSystem: "/dev/a" };
  return { ...disk, ...tier, roots: { ...pool, ...roots } };
}

/** A ready host of zone `local` with PostgreSQL 17. */
export function readyHost(
  id: string,
  spec: Partial<HostSpec> = {},
  facts: Partial<HostFacts> = {},
  status: Partial<HostStatus> = {},
): HostObject {
  const host = newHost(id, { zone: "local", address: `${id}:1`, memoryOvercommit: 2, diskOvercommit: null }, 0);
  const images = [{ engine: "postgresql", version: "17", available: true }];
  const ready = { state: "ready", reason: "", facts: { ...testHostFacts, ...facts }, images } as const;
  return { ...host, spec: { ...host.spec, ...spec }, status: { ...host.status, ...ready, ...status } };
}
