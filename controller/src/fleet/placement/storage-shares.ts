import { admitDisk, admitRoot, firstBytes, inGib } from "@holdfast/compute/local/free-space.ts";
import type { HostObject } from "../host/host.ts";
import type { MachineSpecObject } from "../machine/machine.ts";

/** What a machine takes of its host's storage: its data disk, and its root where the host has roots. */
export type StorageWanted = Pick<MachineSpecObject, "storageTier" | "rootBytes" | "diskBytes">;

/** A storage of a host that a machine would be on, with its data, its root, or both. */
export interface StorageShare {
  /** Which of the machine's two it would have. */
  readonly data: boolean;
  readonly root: boolean;
  readonly askedBytes: number;
  /** To other machines, of data and roots. */
  readonly promisedBytes: number;
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** What a new machine takes of it before its user does. */
  readonly firstBytes: number;
}

/**
 * Pure: the storages of a host that this machine would be on, with what these others were promised of them. One where data
 * and roots share their space; no root counts where nobody told of roots.
 */
export function storageShares(
  host: HostObject,
  wanted: StorageWanted,
  others: readonly StorageWanted[],
): StorageShare[] {
  const tier = tierOf(host, wanted);
  const shareOf = (data: boolean, root: boolean, fileSystem: string | undefined): StorageShare => {
    const storage = data ? dataStorageOf(host, wanted) : tier?.roots;
    const { totalBytes = 0, freeBytes = 0 } = storage ?? {};
    return {
      data,
      root,
      askedBytes: takenOf(host, fileSystem, wanted),
      promisedBytes: others.reduce((sum, each) => sum + takenOf(host, fileSystem, each), 0),
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

/** Pure: why no root can be made where the machine's would be, whatever its size; undefined when one can. */
export function rootProblem(wanted: StorageWanted, host: HostObject): string | undefined {
  return tierOf(host, wanted)?.roots?.problem || undefined;
}

/** Pure: why a storage was promised away, with the figures; undefined when there is enough. */
export function promisedShareRefusal(share: StorageShare, { spec }: HostObject): string | undefined {
  const { askedBytes, promisedBytes, totalBytes } = share;
  const factor = spec.diskOvercommit;
  if (factor === null || promisedBytes + askedBytes <= totalBytes * factor) return undefined;
  const what = share.root ? (share.data ? "disk and root" : "root") : "disk";
  return `${inGib(askedBytes)} GiB of ${what} were asked for, and ${inGib(promisedBytes)} GiB of ${inGib(totalBytes)} GiB times ${factor} are promised.`;
}

/** Pure: why what is free of a storage does not suffice, with so many machines that have yet to write; undefined when it does. */
export function freeShareRefusal(share: StorageShare, unmade: number): string | undefined {
  const { data, askedBytes, totalBytes, freeBytes } = share;
  const promisedBytes = unmade * share.firstBytes;
  const space = { totalBytes, freeBytes, promisedBytes };
  const admission = data
    ? admitDisk(askedBytes, space, share.firstBytes)
    : admitRoot(askedBytes, space, share.firstBytes);
  return admission.admitted ? undefined : admission.reason;
}

/** Pure: the first reason against any of these storages; undefined when there is none. */
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

/** What a machine takes of one file system of its host. */
function takenOf(host: HostObject, fileSystem: string | undefined, spec: StorageWanted): number {
  const tier = tierOf(host, spec);
  const data = tier?.fileSystem === fileSystem ? spec.diskBytes : 0;
  const root = tier?.roots !== undefined && tier.roots.fileSystem === fileSystem ? spec.rootBytes : 0;
  return data + root;
}

/** The storage that its data would be on: the tier's where there are tiers. */
function dataStorageOf(host: HostObject, wanted: StorageWanted): { totalBytes: number; freeBytes: number } {
  const { facts } = host.status;
  return tierOf(host, wanted) ?? { totalBytes: facts?.diskTotalBytes ?? 0, freeBytes: facts?.diskFreeBytes ?? 0 };
}

function tierOf({ status }: HostObject, { storageTier }: Pick<StorageWanted, "storageTier">) {
  return status.facts?.tiers.find(({ name }) => name === storageTier);
}
