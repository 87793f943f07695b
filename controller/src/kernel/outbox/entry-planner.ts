import type { History } from "../history/history.ts";
import type { PlannedRows } from "../history/planned-rows.ts";
import type { EventEntry, OutboxEntry } from "../store/outbox-entry.ts";

/** Says which rows of its system events mean, such as the deliveries of a webhook. */
export interface EntryPlanner {
  /** As things were at the revision `asOf` of the store or later. */
  plan(events: readonly EventEntry[], asOf: bigint): Promise<EntryPlan>;
}

export interface EntryPlan {
  readonly planned: PlannedRows;
  /** Told which of the rows were made, once they are in the history for good. */
  inserted(made: ReadonlySet<string>): void;
}

/** Brings entries into the history; `asOf` is the revision that they were read at. */
export type InsertEntries = (entries: readonly OutboxEntry[], asOf: bigint) => Promise<void>;

/** Events and audit are the history's alone; planners add their rows in the same statement. */
export function createInsertEntries(
  history: Pick<History, "insert">,
  planners: readonly EntryPlanner[],
): InsertEntries {
  return async (entries, asOf) => {
    const events = entries.filter((entry) => entry.entry === "event");
    const plans = events.length === 0 ? [] : await Promise.all(planners.map((planner) => planner.plan(events, asOf)));
    const made = new Set(
      await history.insert(
        entries,
        plans.map(({ planned }) => planned),
      ),
    );
    for (const plan of plans) plan.inserted(made);
  };
}
