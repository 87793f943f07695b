import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { EventService } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import type { EventPages } from "./event-pages.ts";

/** The RPCs of events. */
export function createEventApi({ page, ofService }: EventPages): ServedService {
  const handlers: Handlers<typeof EventService> = {
    listEvents: (request, call) => page(request, request.service, call),
    listServiceEvents: (request, call) => ofService(request.serviceId, request, call),
  };
  return serve(EventService, handlers);
}
