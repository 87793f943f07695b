import { EventsTable } from "../events/events-table.tsx";
import { OperationsTable } from "../operations/operations-table.tsx";
import type { TabProps } from "./tab-props.ts";

export function ServiceEventsTab({ service }: TabProps) {
  return (
    <>
      <EventsTable service={service.id} />
      <OperationsTable serviceId={service.id} />
    </>
  );
}
