import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { queuesOf } from "@holdfast/testing/api/service-queues.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { print } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";

// CPU of a service's agent and engine, and of the controller, without queues and with many idle ones, for the same time
// each.
const { values } = parseArgs({
  options: { queues: { type: "string", default: "100" }, seconds: { type: "string", default: "120" } },
});
const [count, seconds] = [Number(values.queues), Number(values.seconds)];

printHost();
const platform = await startPlatform();
try {
  const { service } = await createServices(platform).createRunning("orders");
  const queues = queuesOf(platform, service.id);

  /** CPU of the machine and the controllers so far; an engine's ended sessions count for its first process. */
  function used(): Record<"agent" | "engine" | "controllers", number> {
    const { machines, controllers } = platform.processes();
    const { agent = 0, engine = 0 } = machines[0] ?? {};
    const children = readFileSync(`/proc/${engine}/task/${engine}/children`, "utf8").trim().split(" ").map(Number);
    const sum = (pids: readonly number[]) => pids.reduce((total, pid) => total + cpuMsOf(pid), 0);
    return { agent: sum([agent]), engine: sum([engine, ...children]), controllers: sum(controllers) };
  }
  async function shares(): Promise<Record<keyof ReturnType<typeof used>, number>> {
    const before = used();
    await sleep(seconds * 1_000);
    const after = used();
    const share = (of: keyof typeof before) => (after[of] - before[of]) / (seconds * 10);
    return { agent: share("agent"), engine: share("engine"), controllers: share("controllers") };
  }

  await sleep(30_000);
  const without = await shares();
  for (let n = 0; n < count; n += 1) await queues.create(`idle-${n}`);
  await sleep(30_000);
  const withQueues = await shares();
  const active = (await queues.list()).filter(({ status }) => status === "Active").length;
  // A page of the list has 50.
  if (active !== Math.min(count, 50)) throw new Error(`${active} queues are Active on the first page`);
  const percent = (value: number) => `${value.toFixed(2)}%`;
  const more = { agent: withQueues.agent - without.agent, engine: withQueues.engine - without.engine };
  print(
    `agent, of a core: without; beside ${count} idle queues`,
    `${percent(without.agent)}; ${percent(withQueues.agent)}`,
  );
  print("  engine", `${percent(without.engine)}; ${percent(withQueues.engine)}`);
  print("  controllers", `${percent(without.controllers)}; ${percent(withQueues.controllers)}`);
  print(`${count} idle queues, agent and engine`, percent(more.agent + more.engine), "<= 0.2%");
} finally {
  await platform.remove();
}
