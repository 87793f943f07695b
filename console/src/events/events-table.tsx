import type { PlatformEvent } from "@holdfast/sdk/event-types.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Age } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";
import { eventDetail, eventTitle, ownerNameOf, ownerOf } from "./event-view.ts";

const maxEvents = 100;

interface EventsTableProps {
  /** Id of a service or an app; absent for the events of the organization. */
  readonly service?: string;
  /** Path of the page of a service or an app; without it events have no link. */
  readonly pathOf?: (id: string) => readonly string[];
}

/** The newest events of the organization, or of one service or app, newest first. */
export function EventsTable({ service, pathOf }: EventsTableProps) {
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
        ...(pathOf === undefined
          ? []
          : [["Of", ({ data }: PlatformEvent) => <OwnerLink data={data} pathOf={pathOf} />] as const]),
      ]}
    />
  );
}

interface OwnerLinkProps extends Required<Pick<EventsTableProps, "pathOf">> {
  readonly data: object;
}

function OwnerLink({ data, pathOf }: OwnerLinkProps) {
  const [id, name] = [ownerOf(data), ownerNameOf(data)];
  if (id === undefined) return null;
  return (
    <a class={name === undefined ? "mono small" : undefined} href={hrefOf(...pathOf(id))}>
      {name ?? id}
    </a>
  );
}
