import type { History } from "../history/history.ts";
import type { PlannedRows } from "../history/records.ts";
import type { EventEntry, OutboxEntry } from "../store/outbox-entry.ts";

/** Plans the history rows that a system derives from events, such as webhook deliveries. */
export interface EntryPlanner {
  /** Plans the rows of these events by the state at the store's revision `asOf` or later. */
  plan(events: readonly EventEntry[], asOf: bigint): Promise<EntryPlan>;
}

export interface EntryPlan {
  readonly planned: PlannedRows;
  /**
   * Called after the insert, with the ids of the rows that it inserted durably. A planned row that is not among them
   * may be durable as well: by an earlier insert of its event, or because the result of this insert was lost.
   */
  ended(rowIds: ReadonlySet<string>): void;
}

/** Inserts entries into the history; `asOf` is the revision at which they were read. */
export type InsertEntries = (entries: readonly OutboxEntry[], asOf: bigint) => Promise<void>;

/** Combines the history with the planners: their rows are inserted by the same statement as their events. */
export function createInsertEntries(
  history: Pick<History, "insert">,
  planners: readonly EntryPlanner[],
): InsertEntries {
  return async (entries, asOf) => {
    const events = entries.filter((entry) => entry.entry === "event");
    const plans: EntryPlan[] = [];
    let rowIds: readonly string[] = [];
    try {
      if (events.length > 0) for (const planner of planners) plans.push(await planner.plan(events, asOf));
      rowIds = await history.insert(
        entries,
        plans.map(({ planned }) => planned),
      );
    } finally {
      const ids = new Set(rowIds);
      for (const plan of plans) plan.ended(ids);
    }
  };
}
