import type { InstanceKind } from "@holdfast/compute/compute-provider.ts";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import type { EnrolledStatus } from "#kernel/pki/enrollment.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { DataSnapshot } from "#operation/operation.ts";
import type { MachineOwner } from "../owner/owner-kind.ts";
import type { MachineState } from "./machine-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** A machine of the fleet. It belongs to an owner, such as a service, or to the warm pool while it has none. */
export type MachineObject = Resource<MachineSpecObject, MachineStatus>;

/** Stored form of a machine: its software is the two fields `engine` and `version`. */
interface StoredMachine extends Omit<MachineObject, "spec"> {
  readonly spec?: Omit<MachineSpecObject, "software"> & { readonly engine: string; readonly version: string };
}

const stored = storedFormat<StoredMachine>({ "status.staleSnapshots": "leftSnapshots", "status.crashedAt": "diedAt" });

export const machineKind = defineKind<MachineObject>("machine", {
  parse(text) {
    const machine = stored.parse(text);
    // A restore preserves objects that it cannot interpret.
    if (machine.spec === undefined) return machine as never;
    const { engine: name, version, ...spec } = machine.spec;
    return { ...machine, spec: { ...spec, software: { name, version } } };
  },
  format(machine) {
    if (machine.spec === undefined) return stored.format(machine as never);
    const { software, ...spec } = machine.spec;
    return stored.format({ ...machine, spec: { ...spec, engine: software.name, version: software.version } });
  },
  afterRestore,
  indexes: [hostOfMachine],
});

/** Index of machines by host. */
export function hostOfMachine({ spec }: MachineObject): string | undefined {
  return spec.hostId ?? undefined;
}

/** The software that a machine's image contains, such as the engine `postgresql` in version `17`. */
export interface Software {
  readonly name: string;
  readonly version: string;
}

export interface MachineSpecObject {
  /** Null while it is in the warm pool (`warm-pool.ts`). */
  readonly owner: MachineOwner | null;
  /** Absent: a container. */
  readonly kind?: InstanceKind;
  readonly software: Software;
  /** Id of the node image; empty until the placement, or the provider at the creation, chooses one. */
  readonly image: string;
  /** Id of the kernel that a virtual machine boots from; absent for containers, and until one is chosen. */
  readonly guestKernel?: string;
  /** The owner's restart counter that the current run satisfies; absent: 0. */
  readonly machineStarts?: number;
  readonly vcpu: number;
  readonly memoryBytes: number;
  /** Memory of the owner's plan, while the machine has more memory for a restore; absent otherwise. */
  readonly ownMemoryBytes?: number | undefined;
  /** Size of the root file system, if the provider limits it. It never shrinks. */
  readonly rootBytes: number;
  readonly diskBytes: number;
  readonly zone: string;
  readonly storageTier: string;
  /** Anti-affinity: machines of an owner are on different hosts. Required: otherwise the machine is not placed. */
  readonly apart: "preferred" | "required";
  /** Id of its host, which is written before the machine is created there; null until it is placed. */
  readonly hostId: string | null;
  /**
   * The requested snapshot of the data disk. It is taken before the next start; with `restore`, the data is rolled back
   * to it once, before the next start. Absent or null: every snapshot is removed.
   */
  readonly snapshot?: { readonly name: string; readonly restore: boolean } | null;
  /** The desired power state. The request of a deletion is in metadata.deletionRequestedAt. */
  readonly power: "on" | "off";
  /** DNS names in the engine's server certificate. */
  readonly serverNames: readonly string[];
}

/** Size of a machine. */
export type MachineSize = Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes">;

export interface MachineStatus extends EnrolledStatus {
  /** Failed: `reason` has a text that a user can act on, and the reconciler retries. */
  readonly state: MachineState;
  readonly reason: string;
  /** Private address, for controllers and for other machines. Empty until the machine is created. */
  readonly address: string;
  /** Address for clients outside of the hosts' networks; the private address if it has no other. */
  readonly publicAddress: string;
  /**
   * Last crash of a machine in state failed because it crashed repeatedly, in milliseconds since 1970; otherwise
   * absent.
   */
  readonly crashedAt?: number | undefined;
  /** Size that the provider last reported; absent until then. */
  readonly size?: MachineSize;
  /** Reason why a running machine cannot have the size of its spec; absent or empty if nothing prevents it. */
  readonly sizeProblem?: string;
  /** Outcome of the last requested snapshot, recorded before the next start. Outcome `none` has a reason. */
  readonly snapshot?: DataSnapshot & { readonly name: string };
  /** Snapshots whose removal failed. */
  readonly staleSnapshots?: readonly StaleSnapshot[];
}

/**
 * A snapshot that is no longer requested and that its host failed to remove. It is deleted with its machine at the
 * latest.
 */
export interface StaleSnapshot {
  readonly name: string;
  /** Reason of the last failed removal, for operators. */
  readonly reason: string;
  readonly tries: number;
  /** Milliseconds since 1970. */
  readonly triedAt: number;
}

/** True if the machine runs according to its status, so that its agent can be called. */
export function isUp({ status }: MachineObject): boolean {
  return status.state === "running" || status.state === "waiting" || status.state === "claimed";
}

/** Cancels the requested restore of a snapshot: clients may have written data that is newer than the restored store. */
function afterRestore(machine: MachineObject): MachineObject {
  if (machine.spec?.snapshot?.restore !== true) return machine;
  return { ...machine, spec: { ...machine.spec, snapshot: { ...machine.spec.snapshot, restore: false } } };
}
