import { lookUp } from "@holdfast/common/look-up.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { nodeEvent } from "../../node-event.ts";

/**
 * `node.rewound` for each member that follows again without the log that only it had, emitted once for each.
 * `memory` is what was announced so far; undefined if that is unchanged.
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
