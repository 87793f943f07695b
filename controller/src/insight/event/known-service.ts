import type { Call } from "@holdfast/common/call.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { History } from "#kernel/history/history.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";

/**
 * Checks that the organization has, or had, a service: one that is gone is known by its events. Throws SERVICE_NOT_FOUND. A call
 * that is followed is checked once.
 */
export function createKnownServices({
  history,
  access,
}: {
  readonly history: Pick<History, "events">;
  readonly access: ServiceAccess;
}): (serviceId: string, call: Call) => Promise<void> {
  const known = new WeakSet<Call>();
  return async (serviceId, call) => {
    if (known.has(call)) return;
    if (!mayTouch(call, "managed-service", serviceId)) access.require(serviceId, call);
    const filter = { organizationId: organizationOf(call), objectId: serviceId };
    const first = { after: undefined, limit: 1, order: "oldest first" } as const;
    const { items } = await history.events(filter, first);
    if (!items.some(({ objectKind }) => objectKind === "managed-service")) access.require(serviceId, call);
    known.add(call);
  };
}
