import type { Clock } from "@holdfast/common/clock.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { PendingSummary } from "../service/managed-service-message.ts";
import { summaryMessage } from "./maintenance-message.ts";
import { maintenanceWorld, type MaintenanceWorldDeps } from "./maintenance-world.ts";
import { pendingUpdates } from "./pending-updates.ts";

/** What waits to be done to a service now, as it is shown beside it. */
export function pendingSummaries(
  service: ManagedServiceObject,
  deps: MaintenanceWorldDeps & { readonly clock: Clock },
): PendingSummary[] {
  return pendingUpdates(service, maintenanceWorld(service, deps, deps.clock.now())).map(summaryMessage);
}
