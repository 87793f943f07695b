import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, serve, type ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { type EventSchema, EventService, type ListEventsResponseSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { HistoryFilter } from "#kernel/history/history-page.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import { createEventVersions } from "./event-versions.ts";
import { createOwnerCheck } from "./owner-check.ts";

/** The RPCs of EventService. */
export function createEventApi({ page, ofService }: EventPages): ServedService {
  const handlers: Handlers<typeof EventService> = {
    listEvents: (request, call) => page(request, request.service, call),
    listServiceEvents: (request, call) => ofService(request.serviceId, request, call),
  };
  return serve(EventService, handlers);
}

export interface EventPagesDeps {
  readonly history: Pick<History, "events" | "eventsAfter">;
  readonly owners: Pick<MonitoredOwners, "kinds" | "mayRead" | "require">;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export interface EventsRequest {
  readonly type?: string | undefined;
  readonly since?: Timestamp | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly follow?: boolean | undefined;
  /** True: the first page has the newest events. */
  readonly newest?: boolean | undefined;
}

/** The state of a follower after its last page. */
interface LastPage {
  /** Version of the organization's events before the page was read (`EventVersions`). */
  readonly version: number;
  readonly at: number;
}

/** Maximum interval between queries of a follower, even if the version did not change. */
const refreshMs = 15_000;

/** The position before the first event. */
const beginning = "0";

type Page = MessageInitShape<typeof ListEventsResponseSchema>;

export interface EventPages {
  /** A page of the events of the caller's organization, or of one of its owners. */
  page(request: EventsRequest, serviceId: string | undefined, call: Call): Promise<Page>;
  /**
   * A page of the events of a service or another owner, also after its deletion. Throws SERVICE_NOT_FOUND if the
   * organization never had it. `typeOf`: returns the only type of the events, by the owner's kind; without it, the type
   * of the request is used.
   */
  ofService(
    serviceId: string,
    request: EventsRequest,
    call: Call,
    typeOf?: (kind: string) => string | undefined,
  ): Promise<Page>;
}

/** Pages of the events of an organization, or of one owner, read from the history. */
export function createEventPages({ history, owners, cursors, clock }: EventPagesDeps): EventPages {
  const news = createEventVersions({ history, clock });
  const lastPages = new WeakMap<Call, LastPage>();
  const requireOwner = createOwnerCheck({ history, owners });

  /** True if the follower has read all events and no event was added since. */
  function isCaughtUp(request: EventsRequest, call: Call, version: number): boolean {
    const last = lastPages.get(call);
    return request.cursor !== undefined && last?.version === version && clock.monotonicMs() - last.at < refreshMs;
  }

  /** A page of the newest events, oldest first. Its position is the end of the history before the query. */
  async function newestPage(filter: HistoryFilter, limit: number) {
    const { newest } = await history.eventsAfter(undefined, 0);
    const after = String(BigInt(newest) + 1n);
    const { items } = await history.events(filter, { after, limit, order: "newest first" });
    return { items: items.toReversed(), next: newest, more: false };
  }

  async function page(request: EventsRequest, serviceId: string | undefined, call: Call) {
    const version = request.follow === true ? news.version(organizationOf(call)) : undefined;
    if (version !== undefined && isCaughtUp(request, call, version))
      return { events: [], nextCursor: request.cursor ?? "", hasMore: false };
    // The cursor is not bound to `since`, which selects only the first page.
    const filter = {
      organizationId: organizationOf(call),
      ...(request.type !== undefined && { type: request.type }),
    };
    const ofObject = serviceId === undefined ? {} : { objectId: serviceId };
    // Cursors name the service as `objectId`, since clients store them.
    const { after, limit, cursorAt } = cursors.open(call, "events", { ...filter, ...ofObject }, request);
    const since = request.since === undefined ? {} : { since: timestampMs(request.since) };
    const selected = { ...filter, ...since, ...(serviceId !== undefined && { serviceId }) };
    const { items, next, more } =
      request.newest === true && after === undefined
        ? await newestPage(selected, limit)
        : await history.events(selected, { after, limit, order: "oldest first" });
    if (version !== undefined && !more) lastPages.set(call, { version, at: clock.monotonicMs() });
    return {
      // A token that is limited to objects gets only their events, so its pages can be shorter than the limit.
      events: items.filter((item) => mayRead(item, call)).map(eventMessage),
      nextCursor: cursorAt(next ?? beginning),
      hasMore: more,
    };
  }

  /** True if the caller may touch the event's object, or the owner that the event names. */
  function mayRead({ objectKind, objectId, data }: EventEntry, call: Call): boolean {
    const ownerId = data["service_id"];
    if (mayTouch(call, objectKind, objectId)) return true;
    return typeof ownerId === "string" && [...owners.kinds.keys()].some((kind) => mayTouch(call, kind, ownerId));
  }

  return {
    page,
    async ofService(serviceId, request, call, typeOf) {
      const kind = await requireOwner(serviceId, call);
      return page({ ...request, type: typeOf?.(kind) ?? request.type }, serviceId, call);
    },
  };
}

/** The API message of an event. */
export function eventMessage({ id, type, occurredAt, data }: EventEntry): MessageInitShape<typeof EventSchema> {
  return { id, eventType: type, timestamp: timestampFromMs(occurredAt), data: data as JsonObject };
}
