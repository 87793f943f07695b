import { setTimeout as sleep } from "node:timers/promises";
import type { AgentMachine } from "./agent-machine.ts";

/** Intervals in milliseconds between the periodic actions of a service's member, during other work on its machine. */
export interface Intervals {
  /** Commits of its liveness probe. */
  readonly probes: readonly number[];
  /** Requests for the primary lease. */
  readonly leaseRequests: readonly number[];
}

/** Settings of a member that is the primary under a lease, without replicas. */
export const primaryByLease = {
  replication: { primaryNodeId: "n-1", members: [{ nodeId: "n-1", number: 1 }], underPrimaryLease: true },
};

/** Checks of a PostgreSQL during `work`; `query` runs a query as the platform's user. */
export async function watchIntervals(
  { controller }: AgentMachine,
  query: (sql: string) => Promise<readonly { readonly at: Date }[]>,
  work: () => Promise<void>,
): Promise<Intervals> {
  const begin = Date.now();
  const probes = [begin];
  let isFinished = false;
  const polling = (async () => {
    while (!isFinished) {
      const [row] = await query("SELECT at FROM holdfast.heartbeat");
      const at = row?.at.getTime() ?? 0;
      if (at > (probes.at(-1) ?? 0)) probes.push(at);
      // Time: the rate of the samples.
      await sleep(50);
    }
  })();
  try {
    await work();
  } finally {
    isFinished = true;
    await polling;
  }
  const end = Date.now();
  const gaps = (times: readonly number[]) => [...times, end].slice(1).map((at, i) => at - (times[i] ?? 0));
  return { probes: gaps(probes), leaseRequests: gaps([begin, ...controller.leaseRequests.filter((at) => at > begin)]) };
}
