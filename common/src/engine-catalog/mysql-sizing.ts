import { clamp } from "./clamp.ts";
import type { EngineSizing, PlanMaximum, PlanSize } from "./engine-row.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;

/** The engine rounds the buffer pool up to multiples of this size. */
const bufferPoolStep = 128 * mib;
/** Memory of the server apart from the buffer pool: code, performance schema, caches and a few sessions. */
const serverBytes = 400 * mib;
/** Memory of a usual session. */
const sessionBytes = 4 * mib;

export const mysqlSizing = {
  parameters: (plan) => ({
    innodb_buffer_pool_size: String(bufferPool(plan)),
    innodb_redo_log_capacity: String(redoLog(plan)),
    max_connections: String(connections(plan)),
  }),
  maximumOf(name, values, { memoryBytes, storageBytes }): PlanMaximum | undefined {
    const pool = values.get("innodb_buffer_pool_size") ?? 0;
    switch (name) {
      case "innodb_buffer_pool_size":
        return { value: Math.max(memoryBytes - serverBytes, bufferPoolStep), of: "memory" };
      case "max_connections":
        return { value: Math.max(Math.floor((memoryBytes - pool) / mib), 50), of: "memory" };
      case "innodb_redo_log_capacity":
        return { value: Math.floor(storageBytes / 8), of: "storage" };
      case "sort_buffer_size":
      case "join_buffer_size":
      case "read_buffer_size":
      case "read_rnd_buffer_size":
      case "tmp_table_size":
      case "max_heap_table_size":
        return { value: Math.floor(memoryBytes / 8), of: "memory" };
      default:
        return undefined;
    }
  },
} satisfies EngineSizing;

/** A smaller machine needs a larger share for the server itself. */
function bufferPool({ memoryBytes }: PlanSize): number {
  const share = memoryBytes < 4 * gib ? 0.4 : 0.6;
  return Math.max(Math.floor((memoryBytes * share) / bufferPoolStep), 1) * bufferPoolStep;
}

function redoLog({ storageBytes }: PlanSize): number {
  return Math.floor(clamp(storageBytes / 20, 32 * mib, 2 * gib) / mib) * mib;
}

function connections(plan: PlanSize): number {
  const left = plan.memoryBytes - bufferPool(plan) - serverBytes;
  return clamp(Math.floor(left / sessionBytes / 10) * 10, 50, 2_000);
}
