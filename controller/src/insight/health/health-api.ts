import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HealthService } from "@holdfast/proto/holdfast/v1/health_pb.ts";
import type { EventPages } from "../event/event-api.ts";
import { healthMessage } from "#services/service/managed-service-message.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";

export interface HealthApiDeps {
  readonly access: ServiceAccess;
  readonly events: EventPages;
}

/** The RPCs of health: the current health of a service, and its past changes by events. */
export function createHealthApi({ access, events }: HealthApiDeps): ServedService {
  const handlers: Handlers<typeof HealthService> = {
    getHealth: async ({ serviceId }, call) => healthMessage(access.require(serviceId, call).object.status.health),
    listHealthHistory: ({ serviceId, ...request }, call) =>
      events.ofService(serviceId, { ...request, type: "service.health_changed" }, call),
  };
  return serve(HealthService, handlers);
}
