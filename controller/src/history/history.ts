import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { AuditEntry, EventEntry, OutboxEntry } from "../store/outbox-entry.ts";
import { createDatabase, type Database, type DatabaseOptions } from "./database.ts";
import { createDeliveries, type Deliveries, type NewDelivery } from "./deliveries.ts";
import type { HistoryFilter, HistoryPage, HistoryResult } from "./history-page.ts";
import { migrate } from "./migrate.ts";
import { dropOldPartitions, makePartitions } from "./partitions.ts";
import { insertAudit, insertEvents, listAudit, listEvents } from "./records.ts";
import { createSamples, type Samples } from "./samples.ts";

/** What happened: events, audit, and what machines were like, in a PostgreSQL database. Only this folder knows that. */
export interface History {
  /**
   * They are in the history for good when it resolves; what is there already stays as it is, and brings no delivery. In the
   * order given. Resolves to the ids of the deliveries that were made.
   */
  insert(entries: readonly OutboxEntry[], deliveries?: readonly NewDelivery[]): Promise<string[]>;
  events(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<EventEntry>>;
  audit(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<AuditEntry>>;
  /** What webhook endpoints have to get, and what they got. */
  readonly deliveries: Deliveries;
  /** What machines were like. */
  readonly samples: Samples;
  /** Makes the coming partitions. */
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
    // Closed before the database came: who waits for `ready` sees it.
  });

  function whenReady(): Database {
    if (!current) throw new HoldfastError("STORE_UNAVAILABLE", "The history database is not ready.");
    return database;
  }

  return {
    async insert(entries, deliveries = []) {
      const there = whenReady();
      const events = entries.filter((entry) => entry.entry === "event");
      const audit = entries.filter((entry) => entry.entry === "audit");
      const made = events.length === 0 ? [] : await insertEvents(there, events, deliveries);
      if (audit.length > 0) await insertAudit(there, audit);
      return made;
    },
    events: async (filter, page) => listEvents(whenReady(), filter, page),
    audit: async (filter, page) => listAudit(whenReady(), filter, page),
    deliveries: createDeliveries(whenReady),
    samples: createSamples(whenReady),
    async prepare(time) {
      const skipped = await whenReady().session((client) => makePartitions(client, time));
      if (skipped.length > 0) log.warn("history partitions not made", { skipped });
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
