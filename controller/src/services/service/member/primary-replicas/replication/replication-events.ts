import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, SlotRecord } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { nodeEvent, serviceEvent } from "../../../service-events.ts";
import { namedPrimary } from "../primary.ts";
import { lookUp } from "@holdfast/common/look-up.ts";

/**
 * One `node.rewound` event for each member that follows again after it discarded log that only it had. `record`: the
 * announced members; undefined if unchanged.
 */
export function discardedTransition(
  service: ManagedServiceObject,
  observed: ObservedService,
): { readonly record: Readonly<Record<string, string>> | undefined; readonly events: readonly NewEvent[] } {
  const before = service.status.discarded ?? {};
  const found = observed.nodes.flatMap(({ node, instance }) => {
    const discarded = instance?.replication?.discarded;
    if (discarded === undefined || lookUp(before, node.id) === discarded.to) return [];
    const { from, to, bytes, savedBytes } = discarded;
    const data = { discarded_from: from, discarded_bytes: Number(bytes), kept_bytes: Number(savedBytes) };
    return [{ id: node.id, to, event: nodeEvent("node.rewound", service, node, data) }];
  });
  if (found.length === 0) return { record: undefined, events: [] };
  const there = new Set(service.spec.nodes.map(({ id }) => id));
  const retained = Object.entries(before).filter(([id]) => there.has(id));
  const record = Object.fromEntries([...retained, ...found.map(({ id, to }) => [id, to] as const)]);
  return { record, events: found.map(({ event }) => event) };
}

/**
 * One `service.slot_lost` event for each logical slot that the primary's engine invalidated, and for each one of the
 * old primary that a new primary lacks. `record`: the slots of the current primary; undefined if unchanged. A slot that
 * disappears without a primary change was dropped, so there is no event.
 */
export function slotTransition(
  service: ManagedServiceObject,
  observed: ObservedService,
): { readonly record: SlotRecord | undefined; readonly events: readonly NewEvent[] } {
  const nothingNew = { record: undefined, events: [] };
  const primary = observed.nodes.find(({ node }) => node.id === namedPrimary(service));
  const replication = primary?.instance?.replication;
  // The engine of a service without replicas reports slots and no role.
  if (primary?.isCurrent !== true || replication?.role === "replica" || replication?.logicalSlots === undefined)
    return nothingNew;
  const { id: nodeId } = primary.node;
  const slots = replication.logicalSlots.slots.map(({ name, database, plugin }) => ({ name, database, plugin }));
  const invalidated = replication.logicalSlots.lost;
  const lost = invalidated.map(({ name }) => name);
  const record: SlotRecord = { nodeId, slots, ...(lost.length > 0 && { lost }) };
  const before = service.status.slots ?? { nodeId, slots: [] };
  // Nothing is written for services without slots.
  const isSame = JSON.stringify(textOf(before)) === JSON.stringify(textOf(record));
  if (isSame || [before, record].every((each) => each.slots.length === 0 && each.lost === undefined)) return nothingNew;
  const isThere = (name: string) => lost.includes(name) || slots.some((slot) => slot.name === name);
  const missing = before.nodeId === nodeId ? [] : before.slots.filter(({ name }) => !isThere(name));
  const events = [
    ...invalidated
      .filter(({ name }) => before.lost?.includes(name) !== true)
      .map((slot) => ({ slot, from: nodeId, reason: slot.lostReason })),
    ...missing.map((slot) => ({ slot, from: before.nodeId, reason: "not_copied" })),
  ].map(({ slot: { name: slot, database, plugin }, from, reason }) =>
    serviceEvent("service.slot_lost", service, {
      slot,
      database,
      plugin,
      reason,
      from_node_id: from,
      to_node_id: nodeId,
    }),
  );
  return { record, events };
}

/** The record with its members in one order. */
const textOf = ({ nodeId, slots, lost }: SlotRecord) => [
  nodeId,
  slots.map(({ name, database, plugin }) => [name, database, plugin]),
  lost ?? [],
];
