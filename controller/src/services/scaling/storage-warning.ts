import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, AnnouncedStorage } from "../service/managed-service.ts";
import type { ObservedService } from "../service/reconcile/observed-service.ts";
import { serviceEvent } from "../service/service-events.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { nextMetadata } from "#kernel/store/resource.ts";

/** Maximum level of a warning. Above it writes are blocked, which is a different event. */
const maxWarnedPct = 90;

/**
 * The level of the fullest disk to record (`record`; undefined if unchanged), and an event if it has risen.
 */
export function storageTransition(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
): { readonly record: AnnouncedStorage | undefined; readonly events: readonly NewEvent[] } {
  const before = service.status.storage;
  const reports = nodes.flatMap(({ node, instance, connected, isCurrent }) =>
    connected && isCurrent && instance ? { ...instance, nodeId: node.id } : [],
  );
  const previous = before ?? { level: 0, writesBlocked: false };
  // For a node that is disconnected or off the recorded level is used.
  const silent = reports.length < nodes.length ? previous : { level: 0, writesBlocked: false };
  if (reports.length === 0 || service.metadata.deletionRequestedAt !== undefined) return { record: before, events: [] };
  const fullest = reports.reduce((a, b) => (b.storageLevel > a.storageLevel ? b : a));
  const blocked = reports.find((instance) => instance.writesBlocked);
  const level = Math.max(silent.level, fullest.storageLevel);
  const writesBlocked = silent.writesBlocked || blocked !== undefined;
  if (level === previous.level && writesBlocked === previous.writesBlocked) return { record: before, events: [] };
  const events: NewEvent[] = [];
  const warned = Math.min(level, maxWarnedPct);
  const data = { storage_size_gb: service.spec.storageSizeGb };
  if (warned > previous.level)
    events.push(serviceEvent("service.storage_low", service, { used_pct: warned, ...data, node_id: fullest.nodeId }));
  if (blocked !== undefined && !previous.writesBlocked) {
    const { nodeId, storageLevel } = blocked;
    events.push(serviceEvent("service.writes_blocked", service, { used_pct: storageLevel, ...data, node_id: nodeId }));
  }
  return { record: { level, writesBlocked }, events };
}

const writesAllowedMs = 15 * 60_000;

/** The service with writes allowed for 15 minutes; throws WRONG_STATE if no agent reports blocked writes. */
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
    spec: { ...spec, writesAllowedUntil: now + writesAllowedMs, instanceGeneration: instanceGeneration + 1 },
  };
}
