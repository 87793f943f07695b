import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createSpaceLevel } from "../space/space-level.ts";
import type { StoreSpace } from "../space/store-space.ts";
import type { Database } from "./database.ts";

/** How full the history is. */
export interface HistorySpace {
  /** Throws STORE_UNAVAILABLE when users may add nothing more; deletions, and the platform's own writes, go on. */
  admitGrowth(): void;
  /** Asks the database now; without an answer `admitGrowth` goes by the last size. */
  look(): Promise<StoreSpace>;
  close(): void;
}

const lookEveryMs = 30_000;

export interface HistorySpaceOptions {
  readonly database: Database;
  /** What its database may have on the disk of its server. */
  readonly quotaBytes: number;
  readonly log: Log;
}

export function createHistorySpace({ database, quotaBytes, log }: HistorySpaceOptions): HistorySpace {
  const level = createSpaceLevel("history", quotaBytes, log);
  const lookNow = () => inBackground(log, "size of the history", look());
  const looking = setInterval(lookNow, lookEveryMs);
  looking.unref();
  lookNow();

  async function look(): Promise<StoreSpace> {
    const usedBytes = await sizeOf(database).catch(() => undefined);
    if (usedBytes !== undefined) level.note(usedBytes);
    return { name: "history", usedBytes, quotaBytes };
  }

  return { admitGrowth: level.admitGrowth, look, close: () => clearInterval(looking) };
}

async function sizeOf(database: Database): Promise<number> {
  const [row] = await database.query<{ bytes: string }>("SELECT pg_database_size(current_database()) AS bytes");
  return Number(row?.bytes);
}
