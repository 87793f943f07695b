import type { MachineObject, MachineSize } from "../machine/machine.ts";
import type { HostObject } from "../host/host.ts";
import { memoryRefusal, promisesOn } from "./host-promises.ts";
import { firstRefusal, freeShareRefusal, promisedShareRefusal, rootProblem } from "./storage-shares.ts";

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
  const needsRoot = size.rootBytes > spec.rootBytes;
  if (!needsMemory && !needsDisk && !needsRoot) return undefined;
  if (host.spec.destroyedAt !== null) return "it was destroyed.";
  const { state, reason } = host.status;
  if (state !== "ready") return `it is ${state}: ${reason}`;
  // A root never shrinks.
  const wanted = { ...spec, ...size, rootBytes: Math.max(spec.rootBytes, size.rootBytes), id: metadata.id };
  const promises = promisesOn(host, wanted, machines);
  const grown = promises.storages.filter(({ data, root }) => (data && needsDisk) || (root && needsRoot));
  return (
    (needsMemory ? memoryRefusal(wanted, host, promises) : undefined) ??
    (needsRoot ? rootProblem(wanted, host) : undefined) ??
    firstRefusal(grown, (share) => promisedShareRefusal(share, host)) ??
    firstRefusal(grown, (share) => freeShareRefusal(share, promises.unmade))
  );
}
