import { loadCore, type PeerProcess, startPeer } from "../support/peer-process.ts";

/** The agents of many machines (peers/agents.ts), in several processes, so that the garbage of each stays small. */
export interface SimulatedAgents {
  /**
   * Starts agents that do not run, and gives the others a new token; returns the ids without a stream after a while.
   */
  start(machines: readonly { readonly id: string; readonly token: string }[]): Promise<string[]>;
  /** From now on these request the primary lease each second. */
  requestLeases(primaries: readonly string[]): Promise<void>;
  /** Number of leases granted since the last query. */
  grants(): Promise<number>;
  /**
   * Number of agents with a stream opened after this time, and the time of the last one, in milliseconds since 1970.
   */
  opened(sinceMs: number): Promise<{ readonly count: number; readonly lastMs: number }>;
  /** Arrival time of each task, in milliseconds since 1970; null for tasks that have not arrived. */
  arrived(tasks: readonly string[]): Promise<(number | null)[]>;
  /** Longest pause of any process since the last query, milliseconds. */
  longestPauseMs(): Promise<number>;
  end(): Promise<void>;
}

/**
 * A pause of its process delays an agent, and a garbage collection with several threads delays etcd on the shared core:
 * with 2,000 agents in one process that was most of the tail. Real agents have a process each.
 */
const perProcess = 250;

/** Starts the processes without agents. Each gets `settings`. */
export async function startSimulatedAgents(settings: object, machineIds: readonly string[]): Promise<SimulatedAgents> {
  const processes: PeerProcess[] = [];
  const processOf = new Map<string, PeerProcess>();
  for (let from = 0; from < machineIds.length; from += perProcess) {
    const process = await startPeer("agents", settings, loadCore);
    processes.push(process);
    for (const id of machineIds.slice(from, from + perProcess)) processOf.set(id, process);
  }
  const askAll = <T>(question: object) => Promise.all(processes.map((process) => process.query<T>(question)));
  return {
    async start(machines) {
      const missing = processes.map(async (process) => {
        const machinesOfProcess = machines.filter(({ id }) => processOf.get(id) === process);
        return machinesOfProcess.length === 0
          ? []
          : process.query<string[]>({ query: "start", machines: machinesOfProcess });
      });
      return (await Promise.all(missing)).flat();
    },
    async requestLeases(primaries) {
      const requests = processes.map((process) =>
        process.query({ query: "requestLeases", primaries: primaries.filter((id) => processOf.get(id) === process) }),
      );
      await Promise.all(requests);
    },
    async grants() {
      return (await askAll<number>({ query: "grants" })).reduce((sum, count) => sum + count, 0);
    },
    async opened(sinceMs) {
      const all = await askAll<{ count: number; lastMs: number }>({ query: "opened", sinceMs });
      return {
        count: all.reduce((sum, { count }) => sum + count, 0),
        lastMs: Math.max(...all.map(({ lastMs }) => lastMs)),
      };
    },
    async arrived(tasks) {
      const all = await askAll<(number | null)[]>({ query: "arrived", tasks });
      return tasks.map((_, index) => all.map((each) => each[index] ?? null).find((at) => at !== null) ?? null);
    },
    async longestPauseMs() {
      const all = await askAll<{ maxMs: number }>({ query: "loop" });
      return Math.max(...all.map(({ maxMs }) => maxMs));
    },
    async end() {
      await Promise.all(processes.map((process) => process.end()));
    },
  };
}
