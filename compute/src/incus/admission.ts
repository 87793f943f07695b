import { existsSync } from "node:fs";
import { type Admission, type MachineSpec, rootBytesOf } from "../compute-provider.ts";
import { admitForWarmPool, admitDisk, admitRoot, firstBytes, memoryOf, spaceOf } from "../local/free-space.ts";
import type { RootStorage } from "../local/host-facts.ts";
import type { MachineRecord } from "../local/machine-record.ts";
import type { IncusClient } from "./incus-client.ts";

/** Time after its creation in which a machine makes its first writes. */
const firstWritesMs = 120_000;

/** Capacity of a host for machines. */
export interface HostCapacity {
  readonly roots: RootStorage;
  /** Directory of the data disks. */
  readonly directory: string;
  /** Space that snapshots of data disks may still take. */
  readonly snapshotBytes: number;
  /** Number of machines whose first writes may not have happened yet. */
  readonly recentMachines: number;
}

/** Number of machines of the last two minutes, whose first writes may not have happened yet. */
export function countRecent(machines: readonly MachineRecord[], now: number): number {
  return machines.filter(({ createdAt }) => now - createdAt < firstWritesMs).length;
}

/**
 * Admits a new machine in addition to the existing ones, or the growth of an existing one (`exists`). A refusal names
 * the missing resource and the amount. Reservations are checked before, by the controllers (place-machine.ts).
 */
export async function admitMachine(spec: MachineSpec, exists: boolean, capacity: HostCapacity): Promise<Admission> {
  const { roots, directory, snapshotBytes, recentMachines } = capacity;
  const rooted: Admission = exists ? { admitted: true } : admitNewRoot(rootBytesOf(spec.plan), roots, recentMachines);
  if (!rooted.admitted) return rooted;
  const space = await spaceOf(directory, recentMachines * firstBytes + snapshotBytes);
  return spec.ahead ? admitForWarmPool(space, await memoryOf()) : admitDisk(spec.diskBytes, space);
}

function admitNewRoot(rootBytes: number, roots: RootStorage, recentMachines: number): Admission {
  if (roots.problem !== "") return { admitted: false, reason: roots.problem };
  return admitRoot(rootBytes, { ...roots, pendingWriteBytes: recentMachines * roots.firstBytes }, roots.firstBytes);
}

/** Prerequisites of virtual machines that the host lacks, as far as they can be detected without starting one. */
export interface MissingGuestSupport {
  readonly kvm: boolean;
  readonly vsock: boolean;
  readonly qemu: boolean;
}

/**
 * Reason why no virtual machine can be created here, for users; undefined if one can. The daemon reports whether it
 * offers them.
 */
export async function detectGuestRefusal(incus: IncusClient, signal: AbortSignal): Promise<string | undefined> {
  const { environment } = await incus.call<{ environment: { driver: string } }>("GET", "/1.0", signal);
  if (environment.driver.split(" | ").includes("qemu")) return undefined;
  return guestRefusal({
    kvm: !existsSync("/dev/kvm"),
    vsock: !existsSync("/dev/vhost-vsock"),
    qemu: !["/usr/bin", "/usr/local/bin"].some((directory) => existsSync(`${directory}/qemu-system-x86_64`)),
  });
}

/** The missing prerequisites, with their remedies. */
export function guestRefusal({ kvm, vsock, qemu }: MissingGuestSupport): string {
  const missing = [
    ...(kvm
      ? ["it has no KVM (/dev/kvm): enable virtualization in its firmware, or on the host that it is a guest of"]
      : []),
    ...(vsock ? ["it has no /dev/vhost-vsock: load the kernel module vhost_vsock"] : []),
    ...(qemu ? ["it has no QEMU: install qemu-system-x86, qemu-system-modules-spice and ovmf"] : []),
  ];
  const found =
    missing.length === 0 ? "its Incus does not offer them, and the log of incusd has the reason" : missing.join("; ");
  return `The host cannot run virtual machines: ${found}; then restart Incus. Plans of kind container run here.`;
}
