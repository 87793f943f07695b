import { type Admission, type MachineSpec, rootBytesOf } from "../compute-provider.ts";
import type { MachineRecord } from "../host/machine-record.ts";
import type { IncusClient } from "./incus-client.ts";
import { admitAhead, admitDisk, firstBytes, inGib, memoryOf, spaceOf } from "../host/free-space.ts";

const youngMs = 120_000;
/** A root out of the image is a snapshot: this is what a machine adds to it at first. */
const firstRootWrites = 256 * 1024 ** 2;

/** btrfs is full before its figures say so, and the machines that are here write too. */
const reserveShare = 0.05;

/** What a host has for machines. */
export interface HostRoom {
  /** What Incus says of the pool: Created when it is well. */
  readonly poolStatus: string;
  readonly poolBytes: number;
  readonly poolFreeBytes: number;
  /** Machines that are yet to write what a new one writes. */
  readonly youngMachines: number;
  /** Where data disks are. */
  readonly directory: string;
  /** What snapshots of data disks there may still come to take. */
  readonly snapshotBytes: number;
}

/** As Incus and the machines' records tell. */
export async function roomOf(
  incus: IncusClient,
  machines: readonly MachineRecord[],
  place: {
    readonly pool: string;
    readonly directory: string;
    /** What snapshots of data disks there may still come to take. */
    readonly snapshotBytes: number;
    readonly now: number;
  },
  signal: AbortSignal,
): Promise<HostRoom> {
  const { pool, directory, snapshotBytes, now } = place;
  const [{ status }, roots] = await Promise.all([
    incus.call<{ status: string }>("GET", `/1.0/storage-pools/${pool}`, signal),
    incus.call<{ space: { used: number; total: number } }>("GET", `/1.0/storage-pools/${pool}/resources`, signal),
  ]);
  return {
    poolStatus: status,
    poolBytes: roots.space.total,
    poolFreeBytes: roots.space.total - roots.space.used,
    youngMachines: machines.filter(({ createdAt }) => now - createdAt < youngMs).length,
    directory,
    snapshotBytes,
  };
}

/**
 * Can the host take this machine besides those it has, or give one that it has what it is to grow to? A refusal names what is
 * short, and by how much. Memory is promised before a machine is made (place-machine.ts), and by whoever knows of all promises.
 */
export async function admitMachine(spec: MachineSpec, isMade: boolean, room: HostRoom): Promise<Admission> {
  const refused = isMade ? undefined : admitRoot(rootBytesOf(spec.plan), room);
  if (refused !== undefined) return { admitted: false, reason: refused };
  const space = await spaceOf(room.directory, room.youngMachines * firstBytes + room.snapshotBytes);
  return spec.ahead ? admitAhead(space, await memoryOf()) : admitDisk(spec.diskBytes, space);
}

/**
 * Pure: why not, or undefined. Roots are as sparse as data disks: together they may promise more than the pool has, no single one
 * may.
 */
export function admitRoot(
  rootBytes: number,
  room: Pick<HostRoom, "poolStatus" | "poolBytes" | "poolFreeBytes" | "youngMachines">,
): string | undefined {
  if (room.poolStatus !== "Created") return `The host's storage pool is out of order: Incus says ${room.poolStatus}.`;
  if (rootBytes > room.poolBytes)
    return `The host's storage pool has ${inGib(room.poolBytes)} GiB in all; a root of ${inGib(rootBytes)} GiB was asked for.`;
  const neededBytes = room.poolBytes * reserveShare + firstRootWrites * (room.youngMachines + 1);
  if (room.poolFreeBytes >= neededBytes) return undefined;
  return `The host's storage pool is too full: ${inGib(room.poolFreeBytes)} GiB of ${inGib(room.poolBytes)} GiB are free, a new machine needs ${inGib(neededBytes)} GiB to be.`;
}
