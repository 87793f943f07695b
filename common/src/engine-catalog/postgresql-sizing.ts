import { clamp } from "./clamp.ts";
import type { EngineSizing, PlanMaximum, PlanSize } from "./engine-row.ts";

type Values = ReadonlyMap<string, number>;

const kib = 1024;
const mib = 1024 ** 2;
const gib = 1024 ** 3;

/** Maximum share of memory for shared memory; the remainder is for sessions and the agent. */
const sharedShare = 0.6;
/** Maximum share of memory for one sort, one maintenance command or the temporary tables of one session. */
const sessionShare = 0.5;
const sessionParameters = [
  "work_mem",
  "maintenance_work_mem",
  "autovacuum_work_mem",
  "temp_buffers",
  "logical_decoding_work_mem",
] as const;
/** Approximate memory of an idle session in bytes, without shared memory. */
const connectionBytes = mib;
const connectionsFloor = 500;
/** Maximum share of memory for shared memory of an engine that only replays log, and its smallest buffers. */
export const replayShare = 0.75;
export const replayBuffersMib = 16;
/** Maximum shares of the storage for WAL: before a checkpoint forces its removal, and WAL that is never removed. */
const storageShares = { max_wal_size: 0.5, min_wal_size: 0.25 } as const;

export const postgresqlSizing: EngineSizing = { parameters, maximumOf, canReplay };

function parameters(plan: PlanSize): Readonly<Record<string, string>> {
  const memoryMib = plan.memoryBytes / mib;
  // Maximum number of user sessions.
  const clients = Math.round(clamp((plan.memoryBytes / gib) * 50, 50, 1_000));
  const sharedBuffers = Math.floor(memoryMib / 4);
  // A quarter of the memory for sorts and hashes, if every tenth session runs one in each of its workers.
  const workMem = clamp(Math.floor(memoryMib / 4 / (clients / 10)), 4, 256);
  const workers = Math.max(plan.vcpu, 2);
  const storageMib = plan.storageBytes / mib;
  return {
    max_connections: String(clients),
    shared_buffers: megabytes(sharedBuffers),
    effective_cache_size: megabytes(Math.floor((memoryMib * 3) / 4)),
    work_mem: megabytes(workMem),
    maintenance_work_mem: megabytes(clamp(Math.floor(memoryMib / 16), 64, 2_048)),
    max_worker_processes: String(8 + workers),
    max_parallel_workers: String(workers),
    max_parallel_workers_per_gather: String(clamp(Math.floor(plan.vcpu / 2), 0, 4)),
    max_parallel_maintenance_workers: String(clamp(Math.floor(plan.vcpu / 2), 1, 4)),
    max_wal_size: megabytes(clamp(Math.floor(storageMib / 10), 128, 8_192)),
    min_wal_size: megabytes(clamp(Math.floor(storageMib / 40), 80, 1_024)),
  };
}

function maximumOf(name: string, values: Values, { memoryBytes, storageBytes }: PlanSize): PlanMaximum | undefined {
  if (name === "max_wal_size" || name === "min_wal_size")
    return { value: storageBytes * storageShares[name], of: "storage" };
  if ((sessionParameters as readonly string[]).includes(name))
    return { value: memoryBytes * sessionShare, of: "memory" };
  const shared = sharedMaximum(name, values, memoryBytes * sharedShare);
  if (shared === undefined) return undefined;
  const connections = Math.max(connectionsFloor, Math.floor(memoryBytes / connectionBytes));
  return { value: name === "max_connections" ? Math.min(shared, connections) : shared, of: "memory" };
}

function canReplay(values: Values, { memoryBytes }: PlanSize): boolean {
  const replaying = new Map([...values, ["shared_buffers", replayBuffersMib * mib]]);
  return sharedBytes(replaying) <= memoryBytes * replayShare;
}

/** Maximum value of a parameter for the shared memory budget. Shared memory is linear in each parameter. */
function sharedMaximum(name: string, values: Values, budget: number): number | undefined {
  const at = (value: number) => sharedBytes(new Map([...values, [name, value]]));
  const baseBytes = at(0);
  const bytesPerUnit = (at(mib) - baseBytes) / mib;
  return bytesPerUnit <= 0 ? undefined : Math.floor((budget - baseBytes) / bytesPerUnit);
}

/**
 * Shared memory of PostgreSQL 17 and 18 in bytes. It is at most a tenth above `postgres -C shared_memory_size`,
 * and never below. The lock table has entries for each session, worker and prepared transaction.
 */
export function sharedBytes(values: Values): number {
  const value = (name: string) => values.get(name) ?? 0;
  // Autovacuum workers and WAL senders have process slots as well.
  const sessions = value("max_connections") + value("max_worker_processes") + 30;
  const slots = sessions + value("max_prepared_transactions");
  const locks = value("max_locks_per_transaction") * 425 + value("max_pred_locks_per_transaction") * 270;
  return (
    8 * mib +
    value("shared_buffers") * 1.035 +
    sessions * value("track_activity_query_size") +
    slots * (8 * kib + locks) +
    value("pg_stat_statements.max") * 450
  );
}

/** Formats MiB as PostgreSQL does: in GB if the value is a multiple of one. */
function megabytes(count: number): string {
  return count % 1024 === 0 ? `${count / 1024}GB` : `${count}MB`;
}
