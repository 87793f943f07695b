import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createSpaceLevel, type StoreSpace } from "../space/space-level.ts";
import type { Database } from "./database.ts";

/** Disk usage of the history. */
export interface HistorySpace {
  /** Throws STORE_UNAVAILABLE while users may only delete. Deletions and the platform's own writes still work. */
  admitGrowth(): void;
  /** Queries the size now. If the database does not respond, `admitGrowth` uses the last size. */
  measure(): Promise<StoreSpace>;
  close(): void;
}

const measureIntervalMs = 30_000;

export interface HistorySpaceOptions {
  readonly database: Database;
  /** Bytes that the database may use on its server's disk. */
  readonly quotaBytes: number;
  readonly log: Log;
}

export function createHistorySpace({ database, quotaBytes, log }: HistorySpaceOptions): HistorySpace {
  const level = createSpaceLevel("history", quotaBytes, log);
  const measureNow = () => inBackground(log, "size of the history", measure());
  const measuring = setInterval(measureNow, measureIntervalMs);
  measuring.unref();
  measureNow();

  async function measure(): Promise<StoreSpace> {
    const usedBytes = await sizeOf(database).catch(() => undefined);
    if (usedBytes !== undefined) level.update(usedBytes);
    return { name: "history", usedBytes, quotaBytes };
  }

  return { admitGrowth: level.admitGrowth, measure, close: () => clearInterval(measuring) };
}

async function sizeOf(database: Database): Promise<number> {
  const [row] = await database.query<{ bytes: string }>("SELECT pg_database_size(current_database()) AS bytes");
  return Number(row?.bytes);
}
