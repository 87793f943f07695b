export interface PlanSize {
  readonly vcpu: number;
  readonly memoryBytes: number;
  readonly storageBytes: number;
}

const mib = 1024 ** 2;
const gib = 1024 ** 3;

/**
 * Pure: the parameters that a plan determines, as the engine prints them. It includes every catalog parameter without a
 * default.
 */
export function planParameters(engine: string, plan: PlanSize): Readonly<Record<string, string>> {
  switch (engine) {
    case "postgresql":
      return postgresql(plan);
    case "valkey":
      return { "io-threads": String(clamp(Math.floor(plan.vcpu / 2), 1, 8)) };
    default:
      return {};
  }
}

/** Maximum number of user sessions of an instance. */
export function clientsOf(engine: string, plan: PlanSize): number {
  const gigabytes = plan.memoryBytes / gib;
  if (engine === "valkey") return Math.round(clamp(gigabytes * 1_000, 500, 8_000));
  return Math.round(clamp(gigabytes * 50, 50, 1_000));
}

/**
 * Memory for data in valkey. A save forks the process and concurrent writes copy pages; the agent and buffers need
 * memory too.
 */
export function valkeyMaxmemoryBytes(plan: PlanSize): number {
  return Math.floor((Math.max(plan.memoryBytes - 192 * mib, 64 * mib) * 0.65) / mib) * mib;
}

function postgresql(plan: PlanSize): Readonly<Record<string, string>> {
  const memoryMib = plan.memoryBytes / mib;
  const clients = clientsOf("postgresql", plan);
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

/** Formats MiB as PostgreSQL does: in GB if the value is a multiple of one. */
function megabytes(count: number): string {
  return count % 1024 === 0 ? `${count / 1024}GB` : `${count}MB`;
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
