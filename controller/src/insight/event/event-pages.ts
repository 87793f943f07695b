import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { ListEventsResponseSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { eventMessage } from "./event-message.ts";
import { createEventNews } from "./event-news.ts";
import { createKnownServices } from "./known-service.ts";

export interface EventPagesDeps {
  readonly history: Pick<History, "events" | "eventsBehind">;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

export interface EventsAsked {
  readonly type?: string | undefined;
  readonly since?: Timestamp | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly follow?: boolean | undefined;
}

/** What a follower's last page found, for as long as its call lasts. */
interface Followed {
  /** Of the organization's news, before the page was read. */
  readonly version: number;
  readonly at: number;
}

/** A follower looks for itself so often, whatever the news say. */
const ownLookMs = 15_000;

/** Before the first event of the history. */
const beginning = "0";

type Page = MessageInitShape<typeof ListEventsResponseSchema>;

export interface EventPages {
  page(asked: EventsAsked, objectId: string | undefined, call: Call): Promise<Page>;
  /** Of one service, also after it is gone; throws SERVICE_NOT_FOUND when the organization never had it. */
  ofService(serviceId: string, asked: EventsAsked, call: Call): Promise<Page>;
}

/** Pages of events of an organization, or of one object of it, read from the history. */
export function createEventPages({ history, access, cursors, clock }: EventPagesDeps): EventPages {
  const news = createEventNews({ history, clock });
  const followed = new WeakMap<Call, Followed>();
  const requireKnown = createKnownServices({ history, access });

  /** True when a follower has had all that there is, and nothing came since. */
  function isQuiet(asked: EventsAsked, call: Call, version: number): boolean {
    const last = followed.get(call);
    return asked.cursor !== undefined && last?.version === version && clock.monotonicMs() - last.at < ownLookMs;
  }

  async function page(asked: EventsAsked, objectId: string | undefined, call: Call) {
    const version = asked.follow === true ? news.version(organizationOf(call)) : undefined;
    if (version !== undefined && isQuiet(asked, call, version))
      return { events: [], nextCursor: asked.cursor ?? "", hasMore: false };
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
    if (version !== undefined && !more) followed.set(call, { version, at: clock.monotonicMs() });
    return {
      // A limited token sees what happened to what it may touch; the page is shorter for it.
      events: items.filter((item) => mayTouch(call, item.objectKind, item.objectId)).map(eventMessage),
      nextCursor: cursorAt(next ?? beginning),
      hasMore: more,
    };
  }

  return {
    page,
    async ofService(serviceId, asked, call) {
      await requireKnown(serviceId, call);
      return page(asked, serviceId, call);
    },
  };
}
