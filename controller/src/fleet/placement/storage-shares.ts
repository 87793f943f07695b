import { admitDisk, admitRoot, firstBytes, inGib } from "@holdfast/compute/local/free-space.ts";
import type { HostObject } from "../host/host.ts";
import type { MachineSpecObject } from "../machine/machine.ts";

/** Storage that a machine needs on its host: a data disk, and a root if the host has pools for roots. */
export type StorageRequest = Pick<MachineSpecObject, "storageTier" | "rootBytes" | "diskBytes">;

/** A storage of a host on which a machine's data disk, its root, or both would be. */
export interface StorageShare {
  /** True if the data disk would be on it. */
  readonly data: boolean;
  /** True if the root would be on it. */
  readonly root: boolean;
  readonly requestedBytes: number;
  /** Bytes that are reserved for data disks and roots of other machines. */
  readonly reservedBytes: number;
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** Bytes that a new machine writes before any user data. */
  readonly firstBytes: number;
}

/**
 * The storages of a host that this machine would use, with the reservations of the other machines. One storage if
 * data disks and roots share a file system. Roots do not count if the host reports no pool for roots.
 */
export function storageShares(
  host: HostObject,
  request: StorageRequest,
  others: readonly StorageRequest[],
): StorageShare[] {
  const tier = tierOf(host, request);
  const shareOf = (data: boolean, root: boolean, fileSystem: string | undefined): StorageShare => {
    const storage = data ? dataStorageOf(host, request) : tier?.roots;
    const { totalBytes = 0, freeBytes = 0 } = storage ?? {};
    return {
      data,
      root,
      requestedBytes: takenOf(host, fileSystem, request),
      reservedBytes: others.reduce((sum, each) => sum + takenOf(host, fileSystem, each), 0),
      totalBytes,
      freeBytes,
      firstBytes: (data ? firstBytes : 0) + (root ? (tier?.roots?.firstBytes ?? 0) : 0),
    };
  };
  const roots = tier?.roots;
  if (roots === undefined) return [shareOf(true, false, tier?.fileSystem)];
  if (roots.fileSystem === tier?.fileSystem) return [shareOf(true, true, roots.fileSystem)];
  return [shareOf(true, false, tier?.fileSystem), shareOf(false, true, roots.fileSystem)];
}

/** The problem of the pool on which the machine's root would be; undefined without one. */
export function rootProblem(request: StorageRequest, host: HostObject): string | undefined {
  return tierOf(host, request)?.roots?.problem || undefined;
}

/** The reason, with figures, why a storage has no unreserved space; undefined if it has enough. */
export function reservationRefusal(share: StorageShare, { spec }: HostObject): string | undefined {
  const { requestedBytes, reservedBytes, totalBytes } = share;
  const factor = spec.diskOvercommit;
  if (factor === null || reservedBytes + requestedBytes <= totalBytes * factor) return undefined;
  const parts = share.root ? (share.data ? "disk and root" : "root") : "disk";
  return `${inGib(requestedBytes)} GiB of ${parts} are requested, and ${inGib(reservedBytes)} GiB of ${inGib(totalBytes)} GiB times ${factor} are reserved.`;
}

/**
 * The reason why a storage's free space does not suffice, given the machines not created yet; undefined if it
 * does.
 */
export function freeSpaceRefusal(share: StorageShare, uncreated: number): string | undefined {
  const { data, requestedBytes, totalBytes, freeBytes } = share;
  const reservedBytes = uncreated * share.firstBytes;
  const space = { totalBytes, freeBytes, pendingWriteBytes: reservedBytes };
  const admission = data
    ? admitDisk(requestedBytes, space, share.firstBytes)
    : admitRoot(requestedBytes, space, share.firstBytes);
  return admission.admitted ? undefined : admission.reason;
}

/** The first reason why one of these storages cannot be used; undefined if all can. */
export function firstRefusal(
  shares: readonly StorageShare[],
  refusal: (share: StorageShare) => string | undefined,
): string | undefined {
  for (const share of shares) {
    const refused = refusal(share);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** Bytes that a machine needs on one file system of its host. */
function takenOf(host: HostObject, fileSystem: string | undefined, spec: StorageRequest): number {
  const tier = tierOf(host, spec);
  const data = tier?.fileSystem === fileSystem ? spec.diskBytes : 0;
  const root = tier?.roots !== undefined && tier.roots.fileSystem === fileSystem ? spec.rootBytes : 0;
  return data + root;
}

/** Space of the storage for a data disk: of its tier, or of the host if the host reports no tiers. */
function dataStorageOf(host: HostObject, request: StorageRequest): { totalBytes: number; freeBytes: number } {
  const { facts } = host.status;
  return tierOf(host, request) ?? { totalBytes: facts?.diskTotalBytes ?? 0, freeBytes: facts?.diskFreeBytes ?? 0 };
}

function tierOf({ status }: HostObject, { storageTier }: Pick<StorageRequest, "storageTier">) {
  return status.facts?.tiers.find(({ name }) => name === storageTier);
}
