import { loadCore, type PeerProcess, startPeer } from "../support/peer-process.ts";

/** Many machines' agents (peers/agents.ts), in as many processes as keep the garbage of each small. */
export interface SimulatedAgents {
  /** Starts those that are not started, and gives the others their new token; answers the ids without a stream after a while. */
  start(machines: readonly { readonly id: string; readonly token: string }[]): Promise<string[]>;
  /** These ask for the right to be the primary each second from now on. */
  askRights(primaries: readonly string[]): Promise<void>;
  /** Rights that were granted since this was asked last. */
  grants(): Promise<number>;
  /** How many have a stream that was opened after this time, and when the last of them opened it, ms since 1970. */
  opened(sinceMs: number): Promise<{ readonly count: number; readonly lastMs: number }>;
  /** When each of these tasks came, ms since 1970; null for those that did not yet. */
  arrived(tasks: readonly string[]): Promise<(number | null)[]>;
  /** The longest that any of the processes stood still since the last time, ms. */
  longestPauseMs(): Promise<number>;
  end(): Promise<void>;
}

/**
 * An agent is late by what its own process stands still, and while that collects its garbage with several threads, etcd waits
 * for the core that they share: with 2,000 in one process that was most of the tail. Real agents have a process each.
 */
const perProcess = 250;

/** Starts the processes, without agents yet. `settings` are those of each. */
export async function startSimulatedAgents(settings: object, machineIds: readonly string[]): Promise<SimulatedAgents> {
  const processes: PeerProcess[] = [];
  const processOf = new Map<string, PeerProcess>();
  for (let from = 0; from < machineIds.length; from += perProcess) {
    const process = await startPeer("agents", settings, loadCore);
    processes.push(process);
    for (const id of machineIds.slice(from, from + perProcess)) processOf.set(id, process);
  }
  const askAll = <T>(question: object) => Promise.all(processes.map((process) => process.ask<T>(question)));
  return {
    async start(machines) {
      const missing = processes.map(async (process) => {
        const own = machines.filter(({ id }) => processOf.get(id) === process);
        return own.length === 0 ? [] : process.ask<string[]>({ ask: "start", machines: own });
      });
      return (await Promise.all(missing)).flat();
    },
    async askRights(primaries) {
      const asked = processes.map((process) =>
        process.ask({ ask: "askRights", primaries: primaries.filter((id) => processOf.get(id) === process) }),
      );
      await Promise.all(asked);
    },
    async grants() {
      return (await askAll<number>({ ask: "grants" })).reduce((sum, count) => sum + count, 0);
    },
    async opened(sinceMs) {
      const all = await askAll<{ count: number; lastMs: number }>({ ask: "opened", sinceMs });
      return {
        count: all.reduce((sum, { count }) => sum + count, 0),
        lastMs: Math.max(...all.map(({ lastMs }) => lastMs)),
      };
    },
    async arrived(tasks) {
      const all = await askAll<(number | null)[]>({ ask: "arrived", tasks });
      return tasks.map((_, index) => all.map((each) => each[index] ?? null).find((at) => at !== null) ?? null);
    },
    async longestPauseMs() {
      const all = await askAll<{ maxMs: number }>({ ask: "loop" });
      return Math.max(...all.map(({ maxMs }) => maxMs));
    },
    async end() {
      await Promise.all(processes.map((process) => process.end()));
    },
  };
}
