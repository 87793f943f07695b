import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, SlotMemory } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { serviceEvent } from "../../../service-events.ts";
import { nodeEvent } from "../../node-event.ts";
import { namedPrimary } from "../primary.ts";
import { lookUp } from "@holdfast/common/look-up.ts";

/**
 * One `node.rewound` event for each member that follows again after it discarded log that only it had. `memory`: the
 * announced members; undefined if unchanged.
 */
export function rememberDiscarded(
  service: ManagedServiceObject,
  observed: ObservedService,
): { readonly memory: Readonly<Record<string, string>> | undefined; readonly events: readonly NewEvent[] } {
  const before = service.status.discarded ?? {};
  const found = observed.nodes.flatMap(({ node, instance }) => {
    const discarded = instance?.replication?.discarded;
    if (discarded === undefined || lookUp(before, node.id) === discarded.to) return [];
    const { from, to, bytes, savedBytes } = discarded;
    const data = { discarded_from: from, discarded_bytes: Number(bytes), kept_bytes: Number(savedBytes) };
    return [{ id: node.id, to, event: nodeEvent("node.rewound", service, node, data) }];
  });
  if (found.length === 0) return { memory: undefined, events: [] };
  const there = new Set(service.spec.nodes.map(({ id }) => id));
  const retained = Object.entries(before).filter(([id]) => there.has(id));
  const memory = Object.fromEntries([...retained, ...found.map(({ id, to }) => [id, to] as const)]);
  return { memory, events: found.map(({ event }) => event) };
}

/**
 * One `service.slot_lost` event for each logical slot of the old primary that the new primary lacks. `memory`: the
 * slots of the current primary; undefined if unchanged. A slot that disappears without a primary change was dropped, so
 * there is no event.
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
  // Nothing is written for services without slots.
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
