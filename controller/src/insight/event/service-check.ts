import type { Call } from "@holdfast/common/call.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { History } from "#kernel/history/history.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";

/**
 * Returns a check that the organization has, or had, a service; a deleted one is found by its events. Throws
 * SERVICE_NOT_FOUND. A call that follows events is checked once.
 */
export function createServiceCheck({
  history,
  access,
}: {
  readonly history: Pick<History, "events">;
  readonly access: ServiceAccess;
}): (serviceId: string, call: Call) => Promise<void> {
  const checked = new WeakSet<Call>();
  return async (serviceId, call) => {
    if (checked.has(call)) return;
    if (!mayTouch(call, "managed-service", serviceId)) access.require(serviceId, call);
    const filter = { organizationId: organizationOf(call), objectId: serviceId };
    const first = { after: undefined, limit: 1, order: "oldest first" } as const;
    const { items } = await history.events(filter, first);
    if (!items.some(({ objectKind }) => objectKind === "managed-service")) access.require(serviceId, call);
    checked.add(call);
  };
}
