import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { AnnouncedUpdate, MaintenanceMemory } from "../service/maintenance-memory.ts";
import { keepersBehind } from "./keeper-update.ts";
import type { MaintenanceWorld, PendingUpdate } from "./pending-update.ts";
import { parametersThatWait, pendingUpdates } from "./pending-updates.ts";

const hourMs = 3_600_000;
/** Updates are announced so long before they are applied; urgent ones as soon as they are known. */
const announcedBeforeMs = 24 * hourMs;
/** While its turn has not come, or something stands against it. */
const waitingMs = 15_000;

/** What is to be done about a service's pending updates now. */
export type MaintenanceAction =
  | { readonly action: "none"; readonly lookAgainMs: number | null }
  /** Parameters wait for a restart since now, or machines for a newer keeper; or none does any more. */
  | ({ readonly action: "note" } & Partial<Pick<MaintenanceMemory, "restartSince" | "keeperSince">>)
  | {
      readonly action: "announce";
      readonly updates: readonly PendingUpdate[];
      readonly known: readonly AnnouncedUpdate[];
    }
  | { readonly action: "begin"; readonly updates: readonly PendingUpdate[] };

/**
 * Pure: notes, announces and begins one after another, each in a look of its own. `mayBegin` is asked only for what is due: it
 * is the fleet's brake.
 */
export function planMaintenance(
  service: ManagedServiceObject,
  world: MaintenanceWorld,
  mayBegin: () => boolean,
): MaintenanceAction {
  const { maintenance, operationId } = service.status;
  if (service.metadata.deletionRequestedAt !== undefined) return { action: "none", lookAgainMs: null };
  const noted = noteRestart(maintenance.restartSince, world) ?? noteKeeper(service, world);
  if (noted !== undefined) return noted;
  const updates = pendingUpdates(service, world);
  const planned = updates.filter(({ applyAt }) => applyAt !== null);
  if (planned.length === 0 && maintenance.announced.length === 0) return { action: "none", lookAgainMs: null };
  const { news, known } = announcements(planned, maintenance.announced, world.now);
  if (news.length > 0 || known.length !== maintenance.announced.length)
    return { action: "announce", updates: news, known };
  const due = planned.filter(({ applyAt, blocked }) => (applyAt ?? Infinity) <= world.now && blocked === null);
  // One restart for all: what is due takes along what could wait.
  if (due.length > 0 && operationId === null && mayBegin())
    return { action: "begin", updates: planned.filter(({ blocked }) => blocked === null) };
  return { action: "none", lookAgainMs: nextLookMs(planned, world.now) };
}

function noteRestart(since: number | null, { instance, now }: MaintenanceWorld): MaintenanceAction | undefined {
  // An engine that says nothing now may still have what waits.
  if (instance?.state !== "running") return undefined;
  const waits = parametersThatWait(instance).length > 0;
  if (waits === (since !== null)) return undefined;
  return { action: "note", restartSince: waits ? now : null };
}

function noteKeeper({ spec, status }: ManagedServiceObject, world: MaintenanceWorld): MaintenanceAction | undefined {
  const { keeperSince = null } = status.maintenance;
  const isBehind = keepersBehind(world).length > 0;
  if (isBehind) return keeperSince === null ? { action: "note", keeperSince: world.now } : undefined;
  // A machine that is silent may still run under an older keeper.
  const allTold = world.keepers.length === spec.nodes.length;
  return keeperSince !== null && allTold ? { action: "note", keeperSince: null } : undefined;
}

/** What users are to hear now, and what they have heard of then. Another time is news again. */
function announcements(
  planned: readonly PendingUpdate[],
  announced: readonly AnnouncedUpdate[],
  now: number,
): { news: PendingUpdate[]; known: AnnouncedUpdate[] } {
  const isKnown = ({ id, applyAt }: PendingUpdate) => announced.some((one) => one.id === id && one.applyAt === applyAt);
  const isNear = ({ urgent, applyAt }: PendingUpdate) => urgent || (applyAt ?? Infinity) - now <= announcedBeforeMs;
  const told = planned.filter((update) => isKnown(update) || isNear(update));
  return {
    news: told.filter((update) => !isKnown(update)),
    known: told.map(({ id, applyAt }) => ({ id, applyAt: applyAt ?? now })),
  };
}

function nextLookMs(planned: readonly PendingUpdate[], now: number): number | null {
  const waits = planned.map(({ applyAt, urgent }) => {
    const at = applyAt ?? now;
    if (at <= now) return waitingMs;
    const announceAt = at - announcedBeforeMs;
    return (urgent || announceAt <= now ? at : announceAt) - now;
  });
  return waits.length === 0 ? null : Math.min(...waits);
}
