import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { HealthMemory, ManagedServiceObject } from "./managed-service.ts";
import { serviceEvent } from "./service-events.ts";

/** A status that is over before is not recorded. */
const healthHoldsMs = 10_000;

/** Pure: what is remembered of the health of now, and the event once its status has held. */
export function rememberHealth(
  service: ManagedServiceObject,
  now: number,
): { readonly memory: HealthMemory; readonly event: NewEvent | undefined } {
  const { health, healthMemory } = service.status;
  // What an older version wrote had announced nothing: its first change is the next one.
  const before = healthMemory ?? { announced: health.status, status: health.status, since: now };
  const memory = before.status === health.status ? before : { ...before, status: health.status, since: now };
  const isOver = memory.announced === memory.status || service.metadata.deletionRequestedAt !== undefined;
  if (isOver || now - memory.since < healthHoldsMs) return { memory, event: undefined };
  const event = serviceEvent("service.health_changed", service, {
    from: memory.announced,
    to: memory.status,
    reason: health.reason,
    checks: health.checks.map(({ name, nodeId, status, reason }) => ({ name, node_id: nodeId, status, reason })),
  });
  return { memory: { ...memory, announced: memory.status }, event };
}

/** When the status of now will have held; null when there is nothing to record. */
export function healthDueInMs({ metadata, status }: ManagedServiceObject, now: number): number | null {
  const memory = status.healthMemory;
  if (memory === undefined || memory.announced === memory.status || metadata.deletionRequestedAt !== undefined)
    return null;
  return Math.max(1, memory.since + healthHoldsMs - now);
}
