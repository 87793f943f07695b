import type { InstanceKind } from "@holdfast/compute/compute-provider.ts";
import type { EnrolledStatus } from "#kernel/pki/enrolled-status.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { DataSnapshot } from "#operation/data-snapshot.ts";
import type { MachineState } from "./machine-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** A machine of the fleet, whoever owns it: a service's node, later an app or a builder; or nobody yet. */
export type MachineObject = Resource<MachineSpecObject, MachineStatus>;

export const machineKind = defineKind<MachineObject>("machine", {
  afterRestore,
  indexes: [hostOfMachine],
});

/** Index: the machines of one host. */
export function hostOfMachine({ spec }: MachineObject): string | undefined {
  return spec.hostId ?? undefined;
}

export interface MachineSpecObject {
  /** Null as long as it waits for one (waiting-machines.ts). */
  readonly owner: { readonly kind: string; readonly id: string } | null;
  /** A container when absent. */
  readonly kind?: InstanceKind;
  readonly engine: string;
  readonly version: string;
  /** Id of the node image; empty as long as none was chosen, which the provider does when it makes the machine. */
  readonly image: string;
  /** Id of the kernel that a virtual machine boots from; absent for containers, and as long as none was chosen, as with images. */
  readonly guestKernel?: string;
  /** Of the starts that its owner asked for, the last that it was started for; absent: 0. */
  readonly machineStarts?: number;
  readonly vcpu: number;
  readonly memoryBytes: number;
  /** Of its root, where it has one of its own; it only grows. */
  readonly rootBytes: number;
  readonly diskBytes: number;
  readonly zone: string;
  readonly storageTier: string;
  /** Members of one service are on hosts of their own: where that is possible, or else not at all. */
  readonly apart: "preferred" | "required";
  /** The host that it is on, written before anything is made there; null as long as it was not placed. */
  readonly hostId: string | null;
  /**
   * A snapshot of the data disk that is to be there, taken before the next start; `restore`: the data go back to it once,
   * before the next start. Absent or null: no snapshot is to be there.
   */
  readonly snapshot?: { readonly name: string; readonly restore: boolean } | null;
  /** What its owner wants; deletion is metadata.deletionRequestedAt. */
  readonly power: "on" | "off";
  /** DNS names that the engine's certificate carries. */
  readonly serverNames: readonly string[];
}

/** How large a machine is. */
export type MachineSize = Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes">;

export interface MachineStatus extends EnrolledStatus {
  /** "failed" has a reason that a user can act on; it is tried again after a while. */
  readonly state: MachineState;
  readonly reason: string;
  /** Private: of controllers, peers and other machines. Empty until it is made. */
  readonly address: string;
  /** Of clients elsewhere; the private one where it has no other. */
  readonly publicAddress: string;
  /** As its provider had it last; absent until it told. */
  readonly size?: MachineSize;
  /** Why a running machine does not have the size that was asked for; absent or empty when it has, or will. */
  readonly sizeProblem?: string;
  /** What became of the snapshot that was asked for last: `none` has a reason. Noted before the start that follows. */
  readonly snapshot?: DataSnapshot & { readonly name: string };
  /** Snapshots that are to be gone and are not. */
  readonly leftSnapshots?: readonly LeftSnapshot[];
}

/** A snapshot that nobody wants any more and that its host could not remove. It is gone with its machine at the latest. */
export interface LeftSnapshot {
  readonly name: string;
  /** Why it could not be removed when that was tried last, for operators. */
  readonly reason: string;
  readonly tries: number;
  /** Milliseconds since 1970. */
  readonly triedAt: number;
}

/** Does it run, as far as is known? Whoever waits for nothing else may speak to its agent. */
export function isUp({ status }: MachineObject): boolean {
  return status.state === "running" || status.state === "waiting" || status.state === "claimed";
}

/** Clients may have written since: its data do not go back to the snapshot of another image's trial. */
function afterRestore(machine: MachineObject): MachineObject {
  if (machine.spec?.snapshot?.restore !== true) return machine;
  return { ...machine, spec: { ...machine.spec, snapshot: { ...machine.spec.snapshot, restore: false } } };
}
