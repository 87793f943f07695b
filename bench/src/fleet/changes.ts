import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { median, ms, percentile, print, times } from "../support/figures.ts";
import { type PeerProcess, startPeer } from "../support/peer-process.ts";
import type { Usage } from "../support/peer-queries.ts";
import type { SimulatedAgents } from "./simulated-agents.ts";

const rounds = 3;

/**
 * Time from a controller's decision to the agent's frame; each decision is written to etcd and acknowledged by its
 * agent. Alternates with etcd's own time from a put to its event, at the same rate on the same core.
 */
export async function measureChanges(
  controller: PeerProcess,
  agents: SimulatedAgents,
  ids: readonly string[],
  etcdUrl: string,
  seconds: number,
): Promise<void> {
  const echo = await startPeer("etcd-watch", { etcdUrl });
  await changesAt(100, 2);
  for (const perSecond of [100, 500]) {
    const measured: {
      p50: number;
      p99: number;
      lagMs: number;
      pauseMs: number;
      agentsPauseMs: number;
      cpuUs: number;
    }[] = [];
    const etcd: { p50: number; p99: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const delays = await echo.query<number[]>({ query: "echo", perSecond, seconds });
      etcd.push({ p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) });
      measured.push(await changesAt(perSecond, seconds));
    }
    const of = (values: readonly number[]) => ms(median(values));
    const bar = perSecond === 500 ? "<= 25 ms p99" : "";
    print(
      `change to agent at ${perSecond}/s, p50 / p99`,
      `${of(measured.map(({ p50 }) => p50))} / ${of(measured.map(({ p99 }) => p99))}`,
      bar,
    );
    print(`  p99 of each round`, measured.map(({ p99 }) => ms(p99)).join(", "));
    print(`  event loop late, p99`, of(measured.map(({ lagMs }) => lagMs)));
    const pauses = measured.map(({ pauseMs, agentsPauseMs }) => `${ms(pauseMs)} and ${ms(agentsPauseMs)}`);
    print(`  longest pauses, controller and agents`, pauses.join(", "));
    print(`  CPU of the controller a change`, `${median(measured.map(({ cpuUs }) => cpuUs)).toFixed(0)} us`);
    print(
      `  etcd's own put to event, p50 / p99`,
      `${of(etcd.map(({ p50 }) => p50))} / ${of(etcd.map(({ p99 }) => p99))}`,
    );
    print(
      `  p99 to etcd's own, median`,
      times(median(measured.map(({ p99 }, index) => p99 / (etcd[index]?.p99 ?? Number.NaN)))),
      perSecond === 500 ? "<= 3x" : "",
    );
  }
  await echo.end();

  async function changesAt(perSecond: number, forSeconds: number) {
    const before = await controller.query<Usage>({ query: "usage" });
    await Promise.all([controller.query({ query: "loop" }), agents.longestPauseMs()]);
    const { requestedAt, refused } = await controller.query<{ requestedAt: Record<string, number>; refused: number }>({
      query: "change",
      ids,
      perSecond,
      seconds: forSeconds,
    });
    if (refused > 0)
      print(`  ${perSecond}/s was too much: refused by the store`, `${refused} of ${perSecond * forSeconds}`, "0");
    const lag = await controller.query<{ p99Ms: number; maxMs: number }>({ query: "loop" });
    const agentsPauseMs = await agents.longestPauseMs();
    const tasks = Object.keys(requestedAt);
    const arrived = () => agents.arrived(tasks);
    const arrivals = await waitUntil(
      "every task arrived",
      async () => {
        const now = await arrived();
        return now.every((at) => at !== null) ? (now as number[]) : undefined;
      },
      {
        withinMs: 60_000,
        everyMs: 200,
        async describe() {
          const late = (await arrived()).filter((at) => at === null).length;
          const streams = await controller.query<number>({ query: "streams" });
          const logged = JSON.stringify(await controller.query({ query: "logged" }));
          return `${late} of ${tasks.length} did not; ${streams} agents are connected; the controller's log: ${logged}`;
        },
      },
    );
    await waitUntil(
      "every task ended",
      async () => (await controller.query<number>({ query: "unfinished", tasks })) === 0,
      { withinMs: 60_000, everyMs: 200 },
    );
    const after = await controller.query<Usage>({ query: "usage" });
    const delays = tasks.map((id, index) => (arrivals[index] ?? 0) - (requestedAt[id] ?? 0));
    const cpuUs = (after.cpuUs - before.cpuUs) / tasks.length;
    return {
      p50: percentile(delays, 0.5),
      p99: percentile(delays, 0.99),
      lagMs: lag.p99Ms,
      pauseMs: lag.maxMs,
      agentsPauseMs,
      cpuUs,
    };
  }
}
