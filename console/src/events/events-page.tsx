import { useOwnerPaths } from "../owners/use-owner-paths.ts";
import { PageHead } from "../parts/parts.tsx";
import { EventsTable } from "./events-table.tsx";

/** The activity of the organization. */
export function EventsPage() {
  const pathOf = useOwnerPaths();
  return (
    <>
      <PageHead title="Activity" about="Events of the organization, newest first" />
      <EventsTable pathOf={pathOf} />
    </>
  );
}
