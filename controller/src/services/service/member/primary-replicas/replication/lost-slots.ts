import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, SlotMemory } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { serviceEvent } from "../../../service-events.ts";
import { namedPrimary } from "../primary.ts";

/**
 * `service.slot_lost` for each logical slot of the old primary that the new one lacks. `memory` is the slots of
 * the current primary; undefined if unchanged. A slot that disappears from an unchanged primary was dropped, which is
 * no event.
 */
export function rememberSlots(
  service: ManagedServiceObject,
  observed: ObservedService,
): { readonly memory: SlotMemory | undefined; readonly events: readonly NewEvent[] } {
  const nothingNew = { memory: undefined, events: [] };
  const primary = observed.nodes.find(({ node }) => node.id === namedPrimary(service));
  const replication = primary?.instance?.replication;
  if (primary?.isCurrent !== true || replication?.role !== "primary" || replication.logicalSlots === undefined)
    return nothingNew;
  const slots = replication.logicalSlots.slots.map(({ name, database, plugin }) => ({ name, database, plugin }));
  const { id: nodeId } = primary.node;
  const before = service.status.slots ?? { nodeId, slots: [] };
  const isSame = before.nodeId === nodeId && JSON.stringify(before.slots) === JSON.stringify(slots);
  // Most services have no slots, so nothing is written for them.
  if (isSame || (before.slots.length === 0 && slots.length === 0)) return nothingNew;
  const lost =
    before.nodeId === nodeId ? [] : before.slots.filter(({ name }) => !slots.some((slot) => slot.name === name));
  const events = lost.map(({ name: slot, database, plugin }) =>
    serviceEvent("service.slot_lost", service, {
      slot,
      database,
      plugin,
      from_node_id: before.nodeId,
      to_node_id: nodeId,
    }),
  );
  return { memory: { nodeId, slots }, events };
}
