import { timestampMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { EventService } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import { mayTouch, organizationOf } from "../access/caller.ts";
import type { History } from "../history/history.ts";
import type { ServiceAccess } from "../managed-service/service-access.ts";
import type { Cursors } from "../page/cursor.ts";
import { eventMessage } from "./event-message.ts";

export interface EventApiDeps {
  readonly history: Pick<History, "events">;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
}

interface Asked {
  readonly type?: string | undefined;
  readonly since?: Timestamp | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Before the first event of the history. */
const beginning = "0";

/** The RPCs of events, read from the history. */
export function createEventApi({ history, access, cursors }: EventApiDeps): ServedService {
  async function page(asked: Asked, objectId: string | undefined, call: Call) {
    // Not bound to `since`: it only says where the first page begins.
    const filter = {
      organizationId: organizationOf(call),
      ...(objectId !== undefined && { objectId }),
      ...(asked.type !== undefined && { type: asked.type }),
    };
    const { after, limit, cursorAt } = cursors.open(call, "events", filter, asked);
    const since = asked.since === undefined ? {} : { since: timestampMs(asked.since) };
    const { items, next, more } = await history.events(
      { ...filter, ...since },
      { after, limit, order: "oldest first" },
    );
    return {
      // A limited token sees what happened to what it may touch; the page is shorter for it.
      events: items.filter((item) => mayTouch(call, item.objectKind, item.objectId)).map(eventMessage),
      nextCursor: cursorAt(next ?? beginning),
      hasMore: more,
    };
  }

  /** A service that is gone is known by its events; throws SERVICE_NOT_FOUND when the organization never had it. */
  async function requireKnown(serviceId: string, call: Call): Promise<void> {
    if (!mayTouch(call, "managed-service", serviceId)) access.require(serviceId, call);
    const filter = { organizationId: organizationOf(call), objectId: serviceId };
    const first = { after: undefined, limit: 1, order: "oldest first" } as const;
    const { items } = await history.events(filter, first);
    if (!items.some(({ objectKind }) => objectKind === "managed-service")) access.require(serviceId, call);
  }

  const handlers: Handlers<typeof EventService> = {
    listEvents: (request, call) => page(request, request.service, call),
    listServiceEvents: async (request, call) => {
      await requireKnown(request.serviceId, call);
      return page(request, request.serviceId, call);
    },
  };
  return serve(EventService, handlers);
}
