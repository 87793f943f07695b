import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { AnnouncedUpdate, MaintenanceRecord } from "./maintenance-record.ts";
import { keepersBehind, parametersThatWait, pendingUpdates } from "./pending-updates.ts";
import type { MaintenanceContext, PendingUpdate } from "./pending-update.ts";

const hourMs = 3_600_000;
/** Time by which an update is announced before it is applied. Urgent updates are announced immediately. */
const announcementLeadMs = 24 * hourMs;
/** Delay of the next check while an update waits for capacity, or has an obstacle. */
const blockedRecheckMs = 15_000;

/** The next action for a service's pending updates. */
export type MaintenanceAction =
  | { readonly action: "none"; readonly recheckInMs: number | null }
  /** Record the time since which parameters await a restart, or machines a newer keeper; null if none does. */
  | ({ readonly action: "note" } & Partial<Pick<MaintenanceRecord, "restartSince" | "keeperSince">>)
  | {
      readonly action: "announce";
      readonly updates: readonly PendingUpdate[];
      readonly announced: readonly AnnouncedUpdate[];
    }
  | { readonly action: "begin"; readonly updates: readonly PendingUpdate[] };

/**
 * The next action: record, announce or begin, one per check. `mayBegin`, of the fleet's
 * rollout limiter, is called only for due updates.
 */
export function planMaintenance(
  service: ManagedServiceObject,
  context: MaintenanceContext,
  mayBegin: () => boolean,
): MaintenanceAction {
  const { maintenance, operationId } = service.status;
  if (service.metadata.deletionRequestedAt !== undefined) return { action: "none", recheckInMs: null };
  const note = noteRestart(maintenance.restartSince, context) ?? noteKeeper(service, context);
  if (note !== undefined) return note;
  const updates = pendingUpdates(service, context);
  const planned = updates.filter(({ applyAt }) => applyAt !== null);
  if (planned.length === 0 && maintenance.announced.length === 0) return { action: "none", recheckInMs: null };
  const { unannounced, announced } = announcements(planned, maintenance.announced, context.now);
  if (unannounced.length > 0 || announced.length !== maintenance.announced.length)
    return { action: "announce", updates: unannounced, announced };
  const due = planned.filter(({ applyAt, blocked }) => (applyAt ?? Infinity) <= context.now && blocked === null);
  // All pending updates are applied together with the due ones, by one restart.
  if (due.length > 0 && operationId === null && mayBegin())
    return { action: "begin", updates: planned.filter(({ blocked }) => blocked === null) };
  return { action: "none", recheckInMs: nextCheckMs(planned, context.now) };
}

function noteRestart(since: number | null, { instance, now }: MaintenanceContext): MaintenanceAction | undefined {
  // An engine that does not respond may still have pending parameters.
  if (instance?.state !== "running") return undefined;
  const waits = parametersThatWait(instance).length > 0;
  if (waits === (since !== null)) return undefined;
  return { action: "note", restartSince: waits ? now : null };
}

function noteKeeper(
  { spec, status }: ManagedServiceObject,
  context: MaintenanceContext,
): MaintenanceAction | undefined {
  const { keeperSince = null } = status.maintenance;
  const isBehind = keepersBehind(context).length > 0;
  if (isBehind) return keeperSince === null ? { action: "note", keeperSince: context.now } : undefined;
  // A machine that does not respond may still run under an older keeper.
  const allReported = context.keepers.length === spec.nodes.length;
  return keeperSince !== null && allReported ? { action: "note", keeperSince: null } : undefined;
}

/** Updates to announce now, and all announced updates afterwards. An update whose time changed is announced again. */
function announcements(
  planned: readonly PendingUpdate[],
  announced: readonly AnnouncedUpdate[],
  now: number,
): { unannounced: PendingUpdate[]; announced: AnnouncedUpdate[] } {
  const isAnnounced = ({ id, applyAt }: PendingUpdate) =>
    announced.some((update) => update.id === id && update.applyAt === applyAt);
  const isDueSoon = ({ urgent, applyAt }: PendingUpdate) => urgent || (applyAt ?? Infinity) - now <= announcementLeadMs;
  const announceable = planned.filter((update) => isAnnounced(update) || isDueSoon(update));
  return {
    unannounced: announceable.filter((update) => !isAnnounced(update)),
    announced: announceable.map(({ id, applyAt }) => ({ id, applyAt: applyAt ?? now })),
  };
}

function nextCheckMs(planned: readonly PendingUpdate[], now: number): number | null {
  const waits = planned.map(({ applyAt, urgent }) => {
    const at = applyAt ?? now;
    if (at <= now) return blockedRecheckMs;
    const announceAt = at - announcementLeadMs;
    return (urgent || announceAt <= now ? at : announceAt) - now;
  });
  return waits.length === 0 ? null : Math.min(...waits);
}
