import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Handlers } from "@holdfast/common/call.ts";
import type { AlertService } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import { eventMessage } from "../event/event-message.ts";
import { createKnownServices } from "../event/known-service.ts";
import type { AlertApiDeps } from "./alert-api-deps.ts";
import { firingAlertMessage } from "./alert-message.ts";

/** The types of events that rules bring. */
const alertEventTypes = ["alert.fired", "alert.resolved"] as const;

/** What fired, and what fires now. */
export function createAlertListHandlers(
  deps: AlertApiDeps,
): Pick<Handlers<typeof AlertService>, "listAlertEvents" | "listFiringAlerts"> {
  const { rules, cursors } = deps;
  const requireKnown = createKnownServices(deps);

  return {
    listAlertEvents: async (request, call) => {
      await requireKnown(request.serviceId, call);
      const filter = { organizationId: organizationOf(call), objectId: request.serviceId, types: alertEventTypes };
      const { after, limit, cursorAt } = cursors.open(call, "alert-events", request.serviceId, request);
      const since = request.since === undefined ? {} : { since: timestampMs(request.since) };
      const page = await deps.history.events({ ...filter, ...since }, { after, limit, order: "oldest first" });
      return {
        events: page.items.map(eventMessage),
        nextCursor: cursorAt(page.next ?? "0"),
        hasMore: page.more,
      };
    },

    listFiringAlerts: async (request, call) => {
      const page = { ...cursors.open(call, "firing-alerts", null, request), organizationId: organizationOf(call) };
      const { items, next } = rules.page(
        ({ spec, status }) => status.fired !== null && mayTouch(call, "managed-service", spec.serviceId),
        page,
      );
      return {
        alerts: items.flatMap(({ object }) =>
          object.status.fired === null ? [] : firingAlertMessage(object, object.status.fired),
        ),
        ...page.next(next),
      };
    },
  };
}
