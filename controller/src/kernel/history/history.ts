import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { AuditEntry, EventEntry, OutboxEntry } from "../store/outbox-entry.ts";
import { createDatabase, type Database, type DatabaseOptions } from "./database.ts";
import type { HistoryFilter, HistoryPage, HistoryResult } from "./history-page.ts";
import { migrate } from "./migrate.ts";
import { dropOldPartitions, makePartitions } from "./partitions.ts";
import type { PlannedRows } from "./planned-rows.ts";
import { eventsBehind, insertAudit, insertEvents, listAudit, listEvents } from "./records.ts";

/** The history: events and audit, and the tables of systems, in a PostgreSQL database. */
export interface History {
  /**
   * When it resolves, the entries are durable, in the order given. An existing entry stays as it is, and brings no
   * planned row. Resolves to the ids of the planned rows that were made.
   */
  insert(entries: readonly OutboxEntry[], planned?: readonly PlannedRows[]): Promise<string[]>;
  events(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<EventEntry>>;
  /** The organizations of events behind a position, `limit` at most; without a position only the newest one. */
  eventsBehind(behind: string | undefined, limit: number): Promise<{ newest: string; organizationIds: string[] }>;
  audit(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<AuditEntry>>;
  /** For tables of systems; throws STORE_UNAVAILABLE until the schema is there. */
  readonly sql: () => Database;
  /** Has a system keep up its own tables whenever partitions are made, which is before old ones are dropped. */
  addUpkeep(work: (now: number) => Promise<unknown>): void;
  /** Makes the coming partitions, then has systems keep up their tables. */
  prepare(now: number): Promise<void>;
  /** Drops the partitions that are older than their table keeps. */
  forget(now: number): Promise<string[]>;
  /** For snapshots of the control plane. */
  readonly database: Database;
  /** Resolves when the schema is there. Until then every call throws STORE_UNAVAILABLE. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Connects, and makes its schema, as soon as the database is there: a controller starts without it. */
export function createHistory(options: DatabaseOptions & { readonly now: () => number }): History {
  const { log, now } = options;
  const database = createDatabase(options);
  const closed = new AbortController();
  const upkeep: ((now: number) => Promise<unknown>)[] = [];
  let current = false;

  async function bringUp(): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        await database.session(async (client) => {
          const steps = await migrate(client);
          if (steps.length > 0) log.info("history migrated", { steps });
          await makePartitions(client, now());
        });
        current = true;
        return;
      } catch (error) {
        if (closed.signal.aborted) return;
        if (failures === 0) log.warn("history is not there", { error });
        await delay(Math.min(100 * 2 ** failures, 3_000), undefined, { signal: closed.signal });
      }
    }
  }
  const ready = bringUp();
  ready.catch(() => {
    // Closed before the database answered: callers that await `ready` get the error.
  });

  function whenReady(): Database {
    if (!current) throw new HoldfastError("STORE_UNAVAILABLE", "The history database is not ready.");
    return database;
  }

  return {
    async insert(entries, planned = []) {
      const there = whenReady();
      const events = entries.filter((entry) => entry.entry === "event");
      const audit = entries.filter((entry) => entry.entry === "audit");
      const made = events.length === 0 ? [] : await insertEvents(there, events, planned);
      if (audit.length > 0) await insertAudit(there, audit);
      return made;
    },
    events: async (filter, page) => listEvents(whenReady(), filter, page),
    eventsBehind: async (behind, limit) => eventsBehind(whenReady(), behind, limit),
    audit: async (filter, page) => listAudit(whenReady(), filter, page),
    sql: whenReady,
    addUpkeep: (work) => {
      upkeep.push(work);
    },
    async prepare(time) {
      const skipped = await whenReady().session((client) => makePartitions(client, time));
      if (skipped.length > 0) log.warn("history partitions not made", { skipped });
      for (const work of upkeep) await work(time);
    },
    forget: (time) => whenReady().session((client) => dropOldPartitions(client, time)),
    database,
    ready,
    async close() {
      closed.abort(new Error("closed"));
      await database.close();
    },
  };
}
