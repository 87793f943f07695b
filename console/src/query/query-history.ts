import { signal } from "@preact/signals";

/** A statement that ran in this browser tab. */
export interface HistoryEntry {
  readonly sql: string;
  readonly database: string;
  readonly time: string;
  /** "3 rows in 12 ms", or the message of the error. */
  readonly outcome: string;
}

const maxEntries = 50;

/** Statements by service, newest first, in memory alone: statements may contain personal data. */
const entries = signal<ReadonlyMap<string, readonly HistoryEntry[]>>(new Map());

export function historyOf(serviceId: string): readonly HistoryEntry[] {
  return entries.value.get(serviceId) ?? [];
}

/** Adds a statement. An earlier run of the same statement is removed. */
export function remember(serviceId: string, entry: HistoryEntry): void {
  const others = historyOf(serviceId).filter(({ sql, database }) => sql !== entry.sql || database !== entry.database);
  entries.value = new Map(entries.value).set(serviceId, [entry, ...others].slice(0, maxEntries));
}
