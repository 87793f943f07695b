import { type Admission, type MachineSpec, rootBytesOf } from "../compute-provider.ts";
import { admitAhead, admitDisk, admitRoot, firstBytes, memoryOf, spaceOf } from "../local/free-space.ts";
import type { RootStorage } from "../local/host-facts.ts";
import type { MachineRecord } from "../local/machine-record.ts";

const youngMs = 120_000;

/** What a host has for machines. */
export interface HostRoom {
  readonly roots: RootStorage;
  /** Where data disks are. */
  readonly directory: string;
  /** What snapshots of data disks there may still come to take. */
  readonly snapshotBytes: number;
  /** Machines that are yet to write what a new one writes. */
  readonly youngMachines: number;
}

/** Pure: of how many of these machines what a new one writes is yet to come. */
export function countYoung(machines: readonly MachineRecord[], now: number): number {
  return machines.filter(({ createdAt }) => now - createdAt < youngMs).length;
}

/**
 * Can the host take this machine besides those it has, or give one that it has what it is to grow to? A refusal names what is
 * short, and by how much. What is promised to machines counts before (place-machine.ts), by whoever knows of all promises.
 */
export async function admitMachine(spec: MachineSpec, isMade: boolean, room: HostRoom): Promise<Admission> {
  const { roots, directory, snapshotBytes, youngMachines } = room;
  const rooted: Admission = isMade ? { admitted: true } : admitNewRoot(rootBytesOf(spec.plan), roots, youngMachines);
  if (!rooted.admitted) return rooted;
  const space = await spaceOf(directory, youngMachines * firstBytes + snapshotBytes);
  return spec.ahead ? admitAhead(space, await memoryOf()) : admitDisk(spec.diskBytes, space);
}

function admitNewRoot(rootBytes: number, roots: RootStorage, youngMachines: number): Admission {
  if (roots.problem !== "") return { admitted: false, reason: roots.problem };
  return admitRoot(rootBytes, { ...roots, promisedBytes: youngMachines * roots.firstBytes }, roots.firstBytes);
}
