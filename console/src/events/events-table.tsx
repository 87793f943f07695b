import type { PlatformEvent } from "@holdfast/sdk/event-types.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Age } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";
import { eventDetail, eventTitle, serviceOf } from "./event-view.ts";

const maxEvents = 100;

/** The newest events of the organization, or of one service, newest first. */
export function EventsTable({ service }: { readonly service?: string }) {
  const live = useLive<readonly PlatformEvent[]>(
    `events ${service ?? ""}`,
    async (signal) => {
      const { events } = account.value.client;
      const options = { limit: maxEvents, signal };
      const list =
        service === undefined
          ? events.list({ newest: true }, options)
          : events.listOfService(service, { newest: true }, options);
      for await (const { entries } of list.pages()) return entries.toReversed();
      return [];
    },
    service === undefined ? {} : { service },
  );
  return (
    <LiveTable
      title="Events"
      live={live}
      keyOf={({ id }) => id}
      icon="clock"
      empty="Nothing has happened yet"
      columns={[
        ["Time", ({ timestamp }) => <Age time={timestamp} />],
        ["Event", ({ event_type: type }) => <b>{eventTitle(type)}</b>],
        ["Details", ({ data }) => <span class="quiet">{eventDetail(data)}</span>],
        ...(service === undefined
          ? [["Service", ({ data }: PlatformEvent) => <ServiceLink id={serviceOf(data)} />] as const]
          : []),
      ]}
    />
  );
}

function ServiceLink({ id }: { readonly id: string | undefined }) {
  return id === undefined ? null : (
    <a class="mono small" href={hrefOf("services", id)}>
      {id}
    </a>
  );
}
