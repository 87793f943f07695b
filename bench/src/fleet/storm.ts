import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { print } from "../support/figures.ts";
import type { PeerProcess } from "../support/peer-process.ts";
import type { Usage } from "../support/peer-queries.ts";
import { effortOf } from "./etcd-effort.ts";
import type { SimulatedAgents } from "./simulated-agents.ts";

/** Kills a server; returns the time in milliseconds until every agent has a stream to the other one. */
export async function measureStorm(
  label: string,
  processes: { readonly victim: PeerProcess; readonly survivor: PeerProcess; readonly agents: SimulatedAgents },
  count: number,
  etcdUrl?: string,
): Promise<number> {
  const { victim, survivor, agents } = processes;
  const effort = async () => (etcdUrl === undefined ? undefined : effortOf(etcdUrl));
  const [before, etcdBefore] = [await survivor.query<Usage>({ query: "usage" }), await effort()];
  const killedMs = performance.timeOrigin + performance.now();
  await victim.end();
  const opened = () => agents.opened(killedMs);
  const { lastMs } = await waitUntil(
    "every agent is back",
    async () => {
      const now = await opened();
      return now.count >= count ? now : undefined;
    },
    { withinMs: 600_000, everyMs: 100, describe: async () => `${(await opened()).count} of ${count}` },
  );
  await waitUntil(
    "the other one holds all",
    async () => (await survivor.query<number>({ query: "streams" })) === count,
    {
      withinMs: 60_000,
    },
  );
  const [after, etcdAfter] = [await survivor.query<Usage>({ query: "usage" }), await effort()];
  const tookMs = lastMs - killedMs;
  print(`${label}: all ${count} agents back`, `${(tookMs / 1_000).toFixed(2)} s`);
  print(`${label}: CPU of the server, a stream`, `${((after.cpuUs - before.cpuUs) / count / 1_000).toFixed(2)} ms`);
  if (etcdBefore !== undefined && etcdAfter !== undefined) {
    const puts = (etcdAfter.puts - etcdBefore.puts) / count;
    const proposals = (etcdAfter.proposals - etcdBefore.proposals) / count;
    print(`${label}: etcd, puts and log entries a stream`, `${puts.toFixed(2)}, ${proposals.toFixed(2)}`);
    print(`${label}: etcd, CPU a stream`, `${((etcdAfter.cpuMs - etcdBefore.cpuMs) / count).toFixed(2)} ms`);
  }
  return tookMs;
}
