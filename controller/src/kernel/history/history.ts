import { setTimeout as delay } from "node:timers/promises";
import { readFile } from "node:fs/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { AuditEntry, EventEntry, OutboxEntry } from "../store/outbox-entry.ts";
import { createDatabase, type Database, type DatabaseOptions } from "./database.ts";
import type { HistoryFilter, HistoryPage, HistoryResult } from "./history-page.ts";
import { migrate, type MigrationGroup, migrationSteps } from "./migrate.ts";
import { dropOldPartitions, createPartitions } from "./partitions.ts";
import type { PlannedRows } from "./planned-rows.ts";
import { eventsAfter, insertAudit, insertEvents, listAudit, listEvents } from "./records.ts";
import type { KernelSettings } from "../kernel-settings.ts";

/**
 * The history in a PostgreSQL database: events, audit entries, and tables of systems. Entries arrive from the outbox.
 * Tables are partitioned by time (partitions.ts), and old partitions are dropped; migrations/ has the schema.
 */
export interface History {
  /**
   * Inserts entries in the given order; they are durable when it resolves. An existing entry stays unchanged, and its
   * planned rows are skipped. Resolves to the ids of the inserted planned rows.
   */
  insert(entries: readonly OutboxEntry[], planned?: readonly PlannedRows[]): Promise<string[]>;
  events(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<EventEntry>>;
  /** The organizations of at most `limit` events after a sequence number; without one, only the newest number. */
  eventsAfter(after: string | undefined, limit: number): Promise<{ newest: string; organizationIds: string[] }>;
  audit(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<AuditEntry>>;
  /** For tables of systems; throws STORE_UNAVAILABLE until the schema is migrated. */
  readonly sql: () => Database;
  /** Registers a system's upkeep of its tables. It runs when partitions are created, before old ones are dropped. */
  addUpkeep(work: (now: number) => Promise<unknown>): void;
  /** Creates the coming partitions, then runs the systems' upkeep. */
  prepare(now: number): Promise<void>;
  /** Drops the partitions beyond their table's retention; resolves to their names. */
  dropExpired(now: number): Promise<string[]>;
  /** For snapshots of the control plane. */
  readonly database: Database;
  /** Resolves when the schema is migrated. Until then every call throws STORE_UNAVAILABLE. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

export interface HistoryOptions extends DatabaseOptions {
  readonly now: () => number;
  /** Migrations of systems. Default: none. */
  readonly migrations?: readonly MigrationGroup[];
}

/** Connects and migrates the schema as soon as the database responds; a controller starts without it. */
export function createHistory(options: HistoryOptions): History {
  const { log, now, migrations = [] } = options;
  const database = createDatabase(options);
  const closed = new AbortController();
  const upkeep: ((now: number) => Promise<unknown>)[] = [];
  let current = false;

  async function bringUp(): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        await database.session(async (client) => {
          const steps = await migrate(client, migrations);
          if (steps.length > 0) log.info("history migrated", { steps });
          await createPartitions(client, now());
        });
        current = true;
        return;
      } catch (error) {
        if (closed.signal.aborted) return;
        if (failures === 0) log.warn("history unavailable", { error });
        await delay(Math.min(100 * 2 ** failures, 3_000), undefined, { signal: closed.signal });
      }
    }
  }
  const ready = bringUp();
  ready.catch(() => {
    // Closed before the database responded: callers that await `ready` get the error.
  });

  function whenReady(): Database {
    if (!current) throw new HoldfastError("STORE_UNAVAILABLE", "The history database is not ready.");
    return database;
  }

  return {
    async insert(entries, planned = []) {
      const connected = whenReady();
      const events = entries.filter((entry) => entry.entry === "event");
      const audit = entries.filter((entry) => entry.entry === "audit");
      const created = events.length === 0 ? [] : await insertEvents(connected, events, planned);
      if (audit.length > 0) await insertAudit(connected, audit);
      return created;
    },
    events: async (filter, page) => listEvents(whenReady(), filter, page),
    eventsAfter: async (after, limit) => eventsAfter(whenReady(), after, limit),
    audit: async (filter, page) => listAudit(whenReady(), filter, page),
    sql: whenReady,
    addUpkeep: (work) => {
      upkeep.push(work);
    },
    async prepare(time) {
      const skipped = await whenReady().session((client) => createPartitions(client, time));
      if (skipped.length > 0) log.warn("history partitions not created", { skipped });
      for (const work of upkeep) await work(time);
    },
    dropExpired: (time) => whenReady().session((client) => dropOldPartitions(client, time)),
    database,
    ready,
    async close() {
      closed.abort(new Error("closed"));
      await database.close();
    },
  };
}

/** The history that the settings name, migrated as soon as its database responds. Throws for a misnamed migration. */
export async function openHistory(
  settings: Pick<KernelSettings, "historyUrl" | "historyPasswordFile" | "historyCa">,
  { clock, log, migrations }: { clock: Clock; log: Log; migrations: readonly MigrationGroup[] },
): Promise<History> {
  await migrationSteps(migrations);
  const { historyUrl: url, historyPasswordFile: passwordFile, historyCa } = settings;
  const tls = historyCa === "" ? {} : { tls: { ca: await readFile(historyCa, "utf8") } };
  return createHistory({ url, passwordFile, ...tls, log, now: clock.now, migrations });
}
