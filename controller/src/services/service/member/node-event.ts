import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { serviceEvent } from "../service-events.ts";
import { roleOf } from "./member-roles.ts";

/** An event about one node of a service. */
export function nodeEvent(
  type: "node.added" | "node.removed" | "node.unhealthy" | "node.rewound",
  service: ManagedServiceObject,
  node: NodeSpec,
  more: Readonly<Record<string, unknown>> = {},
): NewEvent {
  const role = roleOf(service, node);
  const { id, hostname, zone } = node;
  return serviceEvent(type, service, { node_id: id, role, hostname, zone, ...more });
}
