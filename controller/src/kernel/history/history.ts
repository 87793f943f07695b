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
import { eventsAfter, insertAudit, insertEvents, listAudit, listEvents, type PlannedRows } from "./records.ts";
import type { KernelSettings } from "../kernel-settings.ts";

/**
 * The history in a PostgreSQL database: events, audit entries, and tables of systems. Entries arrive from the outbox.
 * Tables are partitioned by time (partitions.ts), and old partitions are dropped; migrations/ has the schema.
 */
export interface History {
  /**
   * Inserts entries in the given order; they are durable when it resolves. An existing entry remains unchanged, and its
   * planned rows are skipped. Resolves to the ids of the inserted planned rows.
   */
  insert(entries: readonly OutboxEntry[], planned?: readonly PlannedRows[]): Promise<string[]>;
  events(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<EventEntry>>;
  /**
   * The organizations of at most `limit` events after a sequence number, and the newest number of these events. Without
   * `after`, only the newest number.
   */
  eventsAfter(after: string | undefined, limit: number): Promise<{ newest: string; organizationIds: string[] }>;
  audit(filter: HistoryFilter, page: HistoryPage): Promise<HistoryResult<AuditEntry>>;
  /** The database, for tables of systems. Throws STORE_UNAVAILABLE until the schema is migrated. */
  readonly sql: () => Database;
  /**
   * Registers work on a system's tables, such as a roll-up. It runs in `prepare`, after partitions are created and
   * before old ones are dropped.
   */
  addTableMaintenance(work: (now: number) => Promise<unknown>): void;
  /** Creates the partitions of the next time spans, then runs the work of `addTableMaintenance`. */
  prepare(now: number): Promise<void>;
  /** Drops the partitions that are older than their table's retention; resolves to their names. */
  dropExpired(now: number): Promise<string[]>;
  /** The database, for snapshots of the control plane; it may not be migrated yet. */
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

/** Connects, and migrates the schema once the database responds. A controller starts even if it does not. */
export function createHistory(options: HistoryOptions): History {
  const { log, now, migrations = [] } = options;
  const database = createDatabase(options);
  const closed = new AbortController();
  const maintenanceTasks: ((now: number) => Promise<unknown>)[] = [];
  let isMigrated = false;

  async function migrateWhenAvailable(): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        await database.session(async (client) => {
          const steps = await migrate(client, migrations);
          if (steps.length > 0) log.info("history migrated", { steps });
          await createPartitions(client, now());
        });
        isMigrated = true;
        return;
      } catch (error) {
        if (closed.signal.aborted) return;
        if (failures === 0) log.warn("history unavailable", { error });
        await delay(Math.min(100 * 2 ** failures, 3_000), undefined, { signal: closed.signal });
      }
    }
  }
  const ready = migrateWhenAvailable();
  ready.catch(() => {
    // Closed before the database responded: callers that await `ready` get the error.
  });

  function whenReady(): Database {
    if (!isMigrated) throw new HoldfastError("STORE_UNAVAILABLE", "The history database is not ready.");
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
    addTableMaintenance: (work) => {
      maintenanceTasks.push(work);
    },
    async prepare(time) {
      const skipped = await whenReady().session((client) => createPartitions(client, time));
      if (skipped.length > 0) log.warn("history partitions not created", { skipped });
      for (const work of maintenanceTasks) await work(time);
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

/** Opens the history of the settings. It is migrated once its database responds. Throws for a misnamed migration. */
export async function openHistory(
  settings: Pick<KernelSettings, "historyUrl" | "historyPasswordFile" | "historyCa">,
  { clock, log, migrations }: { clock: Clock; log: Log; migrations: readonly MigrationGroup[] },
): Promise<History> {
  await migrationSteps(migrations);
  const { historyUrl: url, historyPasswordFile: passwordFile, historyCa } = settings;
  const tls = historyCa === "" ? {} : { tls: { ca: await readFile(historyCa, "utf8") } };
  return createHistory({ url, passwordFile, ...tls, log, now: clock.now, migrations });
}
