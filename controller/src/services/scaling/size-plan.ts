import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { eachOf, type Resizing } from "./service-size.ts";

const mib = 1024 ** 2;

/** What is observed of a node's size. */
interface SizedNode {
  readonly machine: MachineObject | undefined;
  /** What its agent told last: 0 by one that knows of no sizes. */
  readonly instance: { readonly diskBytes: bigint } | undefined;
}

/** What a node's machine waits for on the way to another size. */
export type SizeStep =
  /** Its provider has not made the size that it was asked for. */
  | { readonly kind: "wait" }
  /** Nothing needs more any more than this. */
  | { readonly kind: "fit"; readonly size: MachineSize };

/**
 * Pure: what comes before the engine is told, and after it took its settings; undefined when the engine's turn has come, or
 * all is done. A machine is made larger before its engine is told of it, and smaller once the engine can do without.
 */
export function planSize(
  { resizing }: ManagedServiceObject["spec"],
  { machine }: SizedNode,
  engineTookIt: boolean,
): SizeStep | undefined {
  if (resizing === undefined || machine === undefined) return undefined;
  const { spec } = machine;
  const goal = goalOf(resizing, machine);
  if (!isMade(machine)) {
    const unmade = eachOf((each) => Math.max(goal[each], Math.min(spec[each], machine.status.size?.[each] ?? 0)));
    return resizing.isRolledBack === true && !isSame(unmade, spec) ? { kind: "fit", size: unmade } : { kind: "wait" };
  }
  return engineTookIt && !isSame(goal, spec) ? { kind: "fit", size: goal } : undefined;
}

/** Pure: is the node's machine as large as it is to be, and its file system too, as far as its agent tells that? */
export function isSized(service: ManagedServiceObject, { machine, instance }: SizedNode): boolean {
  const { resizing } = service.spec;
  if (resizing === undefined) return true;
  if (machine === undefined || !isMade(machine)) return false;
  const goal = goalOf(resizing, machine);
  return (
    isSame(goal, machine.spec) &&
    (service.spec.power === "off" || fillsDisk(Number(instance?.diskBytes ?? 0n), goal.diskBytes))
  );
}

/** Has the provider told that the machine is as large as was asked for? */
export function isMade({ spec, status: { size } }: MachineObject): boolean {
  if (size === undefined || size.diskBytes < spec.diskBytes || size.rootBytes < spec.rootBytes) return false;
  return size.vcpu === spec.vcpu && size.memoryBytes === spec.memoryBytes;
}

/** A root never shrinks, and neither does a disk that was made. */
function goalOf({ isRolledBack, fromMachine, toMachine }: Resizing, { spec, status }: MachineObject): MachineSize {
  const goal = isRolledBack === true ? fromMachine : toMachine;
  const madeDisk = Math.min(status.size?.diskBytes ?? 0, spec.diskBytes);
  return {
    ...goal,
    rootBytes: Math.max(goal.rootBytes, spec.rootBytes),
    diskBytes: Math.max(goal.diskBytes, madeDisk),
  };
}

function isSame(one: MachineSize, other: MachineSize): boolean {
  return (
    one.vcpu === other.vcpu &&
    one.memoryBytes === other.memoryBytes &&
    one.rootBytes === other.rootBytes &&
    one.diskBytes === other.diskBytes
  );
}

/**
 * Pure: is a file system of this size that of a disk of the wanted size? It keeps a log for itself. Agents of before tell no
 * size: then the provider's word does.
 */
export function fillsDisk(diskBytes: number, wanted: number): boolean {
  return diskBytes === 0 || wanted - diskBytes <= Math.max(160 * mib, wanted / 256);
}
