import { admitDisk, firstBytes, inGib } from "../compute/host/free-space.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import type { HostObject } from "../host/host.ts";

/** What a machine takes of its host, and whose it is. */
export interface WantedRoom extends Pick<MachineSpecObject, "owner" | "storageTier" | "memoryBytes" | "diskBytes"> {
  /** Its own promise, if it has one already, does not count against it. */
  readonly id: string;
}

/** What other machines were promised of a host. */
export interface Promises {
  readonly memoryBytes: number;
  /** Of the file system that its disk would be on. */
  readonly diskBytes: number;
  /** Placed, and not yet written to. */
  readonly unmade: number;
  /** Members of the same service. */
  readonly peers: number;
}

/** Pure: what the host's machines were promised besides this one. Those that wait for an owner make room for one that has one. */
export function promisesOn(host: HostObject, wanted: WantedRoom, machines: Iterable<MachineObject>): Promises {
  const fileSystem = tierOf(host, wanted)?.fileSystem;
  const promises = { memoryBytes: 0, diskBytes: 0, unmade: 0, peers: 0 };
  for (const { metadata, spec, status } of machines) {
    if (spec.hostId !== host.metadata.id || metadata.id === wanted.id) continue;
    if (spec.owner === null && wanted.owner !== null) continue;
    promises.memoryBytes += spec.memoryBytes;
    if (tierOf(host, spec)?.fileSystem === fileSystem) promises.diskBytes += spec.diskBytes;
    if (status.address === "") promises.unmade += 1;
    if (isPeer(spec, wanted)) promises.peers += 1;
  }
  return promises;
}

/** Pure: why its memory was promised away, with the figures; undefined when there is enough. */
export function memoryRefusal(
  { memoryBytes }: WantedRoom,
  { spec, status }: HostObject,
  promises: Promises,
): string | undefined {
  const total = status.facts?.memoryTotalBytes ?? 0;
  const factor = spec.memoryOvercommit;
  if (factor === null || promises.memoryBytes + memoryBytes <= total * factor) return undefined;
  return `${inGib(memoryBytes)} GiB of memory were asked for, and ${inGib(promises.memoryBytes)} GiB of ${inGib(total)} GiB times ${factor} are promised.`;
}

/** Pure: why its disk was promised away, with the figures; undefined when there is enough. */
export function promisedDiskRefusal(wanted: WantedRoom, host: HostObject, promises: Promises): string | undefined {
  const { diskBytes } = wanted;
  const { totalBytes } = diskOf(host, wanted);
  const factor = host.spec.diskOvercommit;
  if (factor === null || promises.diskBytes + diskBytes <= totalBytes * factor) return undefined;
  return `${inGib(diskBytes)} GiB of disk were asked for, and ${inGib(promises.diskBytes)} GiB of ${inGib(totalBytes)} GiB times ${factor} are promised.`;
}

/** Pure: why what is free of its disk does not suffice, with the figures; undefined when it does. */
export function freeDiskRefusal(wanted: WantedRoom, host: HostObject, { unmade }: Promises): string | undefined {
  const admission = admitDisk(wanted.diskBytes, { ...diskOf(host, wanted), promisedBytes: unmade * firstBytes });
  return admission.admitted ? undefined : admission.reason;
}

/** The storage that it would be on: the tier's where there are tiers. */
export function diskOf(host: HostObject, wanted: WantedRoom): { totalBytes: number; freeBytes: number } {
  const { facts } = host.status;
  return tierOf(host, wanted) ?? { totalBytes: facts?.diskTotalBytes ?? 0, freeBytes: facts?.diskFreeBytes ?? 0 };
}

function tierOf({ status }: HostObject, { storageTier }: Pick<WantedRoom, "storageTier">) {
  return status.facts?.tiers.find(({ name }) => name === storageTier);
}

/** Is it another member of the same service? */
export function isPeer({ owner }: Pick<MachineSpecObject, "owner">, wanted: Pick<WantedRoom, "owner">): boolean {
  return owner !== null && owner.kind === wanted.owner?.kind && owner.id === wanted.owner.id;
}
