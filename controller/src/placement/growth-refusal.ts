import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import type { HostObject } from "../host/host.ts";
import { freeDiskRefusal, memoryRefusal, promisedDiskRefusal, promisesOn } from "./host-promises.ts";

/** How large a machine is. */
export type MachineSize = Pick<MachineSpecObject, "vcpu" | "memoryBytes" | "rootBytes" | "diskBytes">;

/**
 * Pure: why its host cannot let a machine grow to this size, with the figures; undefined when it can. Only what grows is asked
 * for: a host that promised more than it may now takes back what it can get. A cordon keeps new machines away, and is nothing
 * to one that is there.
 */
export function growthRefusal(
  { metadata, spec }: MachineObject,
  size: MachineSize,
  host: HostObject,
  machines: Iterable<MachineObject>,
): string | undefined {
  const needsMemory = size.memoryBytes > spec.memoryBytes;
  const needsDisk = size.diskBytes > spec.diskBytes;
  if (!needsMemory && !needsDisk) return undefined;
  if (host.spec.destroyedAt !== null) return "it was destroyed.";
  const { state, reason } = host.status;
  if (state !== "ready") return `it is ${state}: ${reason}`;
  const wanted = { ...spec, ...size, id: metadata.id };
  const promises = promisesOn(host, wanted, machines);
  return (
    (needsMemory ? memoryRefusal(wanted, host, promises) : undefined) ??
    (needsDisk ? (promisedDiskRefusal(wanted, host, promises) ?? freeDiskRefusal(wanted, host, promises)) : undefined)
  );
}
