import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, StorageMemory } from "../service/managed-service.ts";
import type { ObservedService } from "../service/observed-service.ts";
import { serviceEvent } from "../service/service-events.ts";

/** From here on writes are blocked, which is an event of its own. */
const warnedUpTo = 90;

/**
 * Pure: what is remembered of the fullest disk, and the events where it got fuller; `memory` is undefined as long as there is
 * nothing to remember.
 */
export function rememberStorage(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
): { readonly memory: StorageMemory | undefined; readonly events: readonly NewEvent[] } {
  const before = service.status.storage;
  const told = nodes.flatMap(({ node, instance, connected, isCurrent }) =>
    connected && isCurrent && instance ? { ...instance, nodeId: node.id } : [],
  );
  const known = before ?? { level: 0, writesBlocked: false };
  // A node that is silent or off counts with what was last known.
  const silent = told.length < nodes.length ? known : { level: 0, writesBlocked: false };
  if (told.length === 0 || service.metadata.deletionRequestedAt !== undefined) return { memory: before, events: [] };
  const fullest = told.reduce((one, other) => (other.storageLevel > one.storageLevel ? other : one));
  const blocked = told.find((instance) => instance.writesBlocked);
  const level = Math.max(silent.level, fullest.storageLevel);
  const writesBlocked = silent.writesBlocked || blocked !== undefined;
  if (level === known.level && writesBlocked === known.writesBlocked) return { memory: before, events: [] };
  const events: NewEvent[] = [];
  const warned = Math.min(level, warnedUpTo);
  const figures = { storage_size_gb: service.spec.storageSizeGb };
  if (warned > known.level)
    events.push(
      serviceEvent("service.storage_low", service, { used_pct: warned, ...figures, node_id: fullest.nodeId }),
    );
  if (blocked !== undefined && !known.writesBlocked) {
    const { nodeId, storageLevel } = blocked;
    events.push(
      serviceEvent("service.writes_blocked", service, { used_pct: storageLevel, ...figures, node_id: nodeId }),
    );
  }
  return { memory: { level, writesBlocked }, events };
}
