import { PageHead } from "../parts/parts.tsx";
import { EventsTable } from "./events-table.tsx";

/** The activity of the organization. */
export function EventsPage() {
  return (
    <>
      <PageHead title="Activity" about="Events of the organization, newest first" />
      <EventsTable />
    </>
  );
}
