import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { mapSize, type Resizing } from "./service-size.ts";

const mib = 1024 ** 2;

/** Observed state of a node's size. */
interface SizedNode {
  readonly machine: MachineObject | undefined;
  /** The agent's last report; 0 if it reports no size. */
  readonly instance: { readonly diskBytes: bigint } | undefined;
}

/** The next step of a node's machine toward another size. */
export type SizeStep =
  /** The provider has not resized the machine yet. */
  | { readonly kind: "wait" }
  /** The engine has adapted: the machine gets this size. */
  | { readonly kind: "fit"; readonly size: MachineSize };

/**
 * The next step of the machine: it grows before its engine gets the new settings, and shrinks after the engine applied
 * them. Undefined if the engine must act next, or if the change is complete.
 */
export function planSize(
  { resizing }: ManagedServiceObject["spec"],
  { machine }: SizedNode,
  engineApplied: boolean,
): SizeStep | undefined {
  if (resizing === undefined || machine === undefined) return undefined;
  const { spec } = machine;
  const goal = goalOf(resizing, machine);
  if (!hasRequestedSize(machine)) {
    const reachable = mapSize((each) => Math.max(goal[each], Math.min(spec[each], machine.status.size?.[each] ?? 0)));
    return resizing.isRolledBack === true && !isSame(reachable, spec)
      ? { kind: "fit", size: reachable }
      : { kind: "wait" };
  }
  return engineApplied && !isSame(goal, spec) ? { kind: "fit", size: goal } : undefined;
}

/** True if the node's machine has its final size, and its file system too if the agent reports it. */
export function isSized(service: ManagedServiceObject, { machine, instance }: SizedNode): boolean {
  const { resizing } = service.spec;
  if (resizing === undefined) return true;
  if (machine === undefined || !hasRequestedSize(machine)) return false;
  const goal = goalOf(resizing, machine);
  return (
    isSame(goal, machine.spec) &&
    (service.spec.power === "off" || fillsDisk(Number(instance?.diskBytes ?? 0n), goal.diskBytes))
  );
}

/** True if the provider reports the size that the machine's spec requests. */
export function hasRequestedSize({ spec, status: { size } }: MachineObject): boolean {
  if (size === undefined || size.diskBytes < spec.diskBytes || size.rootBytes < spec.rootBytes) return false;
  return size.vcpu === spec.vcpu && size.memoryBytes === spec.memoryBytes;
}

/** Final size of a machine. Root file systems and existing disks never shrink. */
function goalOf({ isRolledBack, fromMachine, toMachine }: Resizing, { spec, status }: MachineObject): MachineSize {
  const goal = isRolledBack === true ? fromMachine : toMachine;
  const createdBytes = Math.min(status.size?.diskBytes ?? 0, spec.diskBytes);
  return {
    ...goal,
    rootBytes: Math.max(goal.rootBytes, spec.rootBytes),
    diskBytes: Math.max(goal.diskBytes, createdBytes),
  };
}

function isSame(a: MachineSize, b: MachineSize): boolean {
  return (
    a.vcpu === b.vcpu && a.memoryBytes === b.memoryBytes && a.rootBytes === b.rootBytes && a.diskBytes === b.diskBytes
  );
}

/**
 * True if a file system of `diskBytes` fills a disk of `desired` bytes, except for its metadata. Also true for 0: the
 * agent reports no size, and the provider's report decides.
 */
export function fillsDisk(diskBytes: number, desired: number): boolean {
  return diskBytes === 0 || desired - diskBytes <= Math.max(160 * mib, desired / 256);
}
