import { lookUp } from "@holdfast/common/look-up.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import { nodeEvent } from "./settle-members.ts";

/**
 * Pure: the events of members that follow without what only they had, each told once; `memory` is what was announced until now,
 * undefined when that is nothing new.
 */
export function rememberDiscarded(
  service: ManagedServiceObject,
  observed: ObservedService,
): { readonly memory: Readonly<Record<string, string>> | undefined; readonly events: readonly NewEvent[] } {
  const before = service.status.discarded ?? {};
  const found = observed.nodes.flatMap(({ node, instance }) => {
    const discarded = instance?.replication?.discarded;
    if (discarded === undefined || lookUp(before, node.id) === discarded.to) return [];
    const { from, to, bytes, keptBytes } = discarded;
    const told = { discarded_from: from, discarded_bytes: Number(bytes), kept_bytes: Number(keptBytes) };
    return [{ id: node.id, to, event: nodeEvent("node.rewound", service, node, told) }];
  });
  if (found.length === 0) return { memory: undefined, events: [] };
  const there = new Set(service.spec.nodes.map(({ id }) => id));
  const kept = Object.entries(before).filter(([id]) => there.has(id));
  const memory = Object.fromEntries([...kept, ...found.map(({ id, to }) => [id, to] as const)]);
  return { memory, events: found.map(({ event }) => event) };
}
