import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HealthService } from "@holdfast/proto/holdfast/v1/health_pb.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { EventPages } from "../event/event-api.ts";

export interface HealthApiDeps {
  readonly owners: MonitoredOwners;
  readonly events: EventPages;
}

/** The RPCs of HealthService: the current health of a service or another owner, and events of its past changes. */
export function createHealthApi({ owners, events }: HealthApiDeps): ServedService {
  const handlers: Handlers<typeof HealthService> = {
    getHealth: async ({ serviceId }, call) => {
      owners.require(serviceId, call);
      return owners.health(serviceId) ?? {};
    },
    listHealthHistory: ({ serviceId, ...request }, call) =>
      events.ofService(serviceId, request, call, (kind) => owners.kinds.get(kind)?.healthEvent),
  };
  return serve(HealthService, handlers);
}
