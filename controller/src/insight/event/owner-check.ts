import type { Call } from "@holdfast/common/call.ts";
import { organizationOf } from "#access/caller.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { History } from "#kernel/history/history.ts";

/**
 * Returns a check that the organization has, or had, an owner such as a service; a deleted one is found by its events.
 * Throws SERVICE_NOT_FOUND. A call that follows events is checked once.
 */
export function createOwnerCheck({
  history,
  owners,
}: {
  readonly history: Pick<History, "events">;
  readonly owners: Pick<MonitoredOwners, "kinds" | "mayRead" | "require">;
}): (ownerId: string, call: Call) => Promise<void> {
  const checked = new WeakSet<Call>();
  return async (ownerId, call) => {
    if (checked.has(call)) return;
    const permitted = [...owners.kinds.keys()].filter((kind) => owners.mayRead({ kind, id: ownerId }, call));
    if (permitted.length === 0) owners.require(ownerId, call);
    const filter = { organizationId: organizationOf(call), objectId: ownerId };
    const first = { after: undefined, limit: 1, order: "oldest first" } as const;
    const { items } = await history.events(filter, first);
    if (!items.some(({ objectKind }) => permitted.includes(objectKind))) owners.require(ownerId, call);
    checked.add(call);
  };
}
