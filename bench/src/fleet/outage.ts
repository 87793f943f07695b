import { setTimeout as delay } from "node:timers/promises";
import type { TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { print } from "../support/figures.ts";
import type { PeerProcess } from "../support/peer-process.ts";
import { effortOf } from "./etcd-effort.ts";
import type { SimulatedAgents } from "./simulated-agents.ts";

/**
 * Pauses etcd for this many seconds; prints the number of agents that reconnected because of it, and the time until all
 * streams are in use again.
 */
export async function measureOutage(
  etcd: TestEtcd,
  controllers: readonly PeerProcess[],
  agents: SimulatedAgents,
  count: number,
  seconds: number,
): Promise<void> {
  const label = `etcd stopped for ${seconds} s`;
  const before = await effortOf(etcd.url);
  const sinceMs = performance.timeOrigin + performance.now();
  etcd.signal("SIGSTOP");
  await delay(seconds * 1_000);
  etcd.signal("SIGCONT");
  const backMs = performance.now();
  const streams = async () => {
    const each = await Promise.all(controllers.map((controller) => controller.query<number>({ query: "streams" })));
    return each.reduce((sum, one) => sum + one, 0);
  };
  const puts = async () => (await effortOf(etcd.url)).puts - before.puts;
  await waitUntil(
    "every stream has its presence key again",
    async () => (await puts()) >= count && (await streams()) === count,
    {
      withinMs: 120_000,
      everyMs: 100,
      describe: async () => `${await streams()} held, ${await puts()} puts`,
    },
  );
  const reconnected = await agents.opened(sinceMs);
  print(`${label}: agents that connected again`, `${reconnected.count} of ${count}`, "0");
  print(`${label}: all streams in use again`, `${((performance.now() - backMs) / 1_000).toFixed(2)} s after it`);
}
