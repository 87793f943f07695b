import type { Call } from "@holdfast/common/call.ts";
import { organizationOf } from "#access/caller.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { History } from "#kernel/history/history.ts";

/**
 * Returns a function that resolves to the kind of an owner, such as a service, that the organization has or had. A
 * deleted owner is found by its events. The function throws SERVICE_NOT_FOUND. A call that follows events is checked
 * once.
 */
export function createOwnerCheck({
  history,
  owners,
}: {
  readonly history: Pick<History, "events">;
  readonly owners: Pick<MonitoredOwners, "kinds" | "mayRead" | "require">;
}): (ownerId: string, call: Call) => Promise<string> {
  const checked = new WeakMap<Call, string>();

  async function kindOf(ownerId: string, call: Call): Promise<string> {
    const permitted = [...owners.kinds.keys()].filter((kind) => owners.mayRead({ kind, id: ownerId }, call));
    if (permitted.length === 0) return owners.require(ownerId, call).owner.kind;
    const filter = { organizationId: organizationOf(call), objectId: ownerId };
    const first = { after: undefined, limit: 1, order: "oldest first" } as const;
    const { items } = await history.events(filter, first);
    const past = items.find(({ objectKind }) => permitted.includes(objectKind));
    return past?.objectKind ?? owners.require(ownerId, call).owner.kind;
  }

  return async (ownerId, call) => {
    const kind = checked.get(call) ?? (await kindOf(ownerId, call));
    checked.set(call, kind);
    return kind;
  };
}
