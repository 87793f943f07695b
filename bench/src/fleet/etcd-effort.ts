/** Counters of etcd's work so far. */
export interface EtcdEffort {
  readonly cpuMs: number;
  /** Entries of the Raft log, which each member must write and agree on. */
  readonly proposals: number;
  readonly puts: number;
}

export async function effortOf(etcdUrl: string): Promise<EtcdEffort> {
  const text = await (await fetch(`${etcdUrl}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1] ?? Number.NaN);
  return {
    cpuMs: read("process_cpu_seconds_total") * 1_000,
    proposals: read("etcd_server_proposals_committed_total"),
    puts: read("etcd_mvcc_put_total"),
  };
}
