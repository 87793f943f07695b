import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";

const allowedForMs = 15 * 60_000;

/** The service with its writes allowed for a while; throws WRONG_STATE when its agents tell of none that are blocked. */
export function withWritesAllowed(
  service: ManagedServiceObject,
  fleet: Pick<Fleet, "observation">,
  now: number,
): ManagedServiceObject {
  const { metadata, spec } = service;
  const isBlocked = spec.nodes.some(({ id }) => fleet.observation(id)?.instance.writesBlocked === true);
  if (!isBlocked) throw new HoldfastError("WRONG_STATE", "Writes are not blocked.");
  const { instanceGeneration } = spec;
  return {
    ...service,
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, writesAllowedUntil: now + allowedForMs, instanceGeneration: instanceGeneration + 1 },
  };
}
