import { readdirSync, readFileSync } from "node:fs";
import { ms, print } from "../support/figures.ts";
import { cpuMsOf, memoryOf } from "../support/host.ts";
import { withPostgresql } from "./measured-engine.ts";

const intervalMs = 15_000;

/** Cost of engine metrics for agent and engine: CPU of a sample as a share of the interval, and memory. */
export function measureEngineMetrics(rounds: number): Promise<void> {
  return withPostgresql(async ({ driver, instance, signal }) => {
    const look = async () => {
      const reported = await driver.metrics?.read(instance, signal);
      if (reported?.gauges["pg_connections"] !== 0)
        throw new Error(`${reported?.gauges["pg_connections"]} sessions of users`);
    };
    for (let round = 0; round < 20; round += 1) await look();
    const before = memoryOf(process.pid).pssMb;
    const own = process.cpuUsage();
    const engines = engineCpuMs();
    for (let round = 0; round < rounds; round += 1) await look();
    const { user, system } = process.cpuUsage(own);
    const eachMs = (user + system) / 1_000 / rounds;
    const engineMs = (engineCpuMs() - engines) / rounds;
    const share = (cpuMs: number) => `${((cpuMs / intervalMs) * 100).toFixed(3)}%`;
    print("engine metrics, CPU of a look in the agent", `${ms(eachMs)}, ${share(eachMs)} of a core`, "<= 0.1%");
    print("  and in the engine", `${ms(engineMs)}, ${share(engineMs)} of a core`);
    const more = memoryOf(process.pid).pssMb - before;
    print(`  memory that ${rounds} looks leave behind, PSS`, `${more.toFixed(1)} MB`, "<= 3 MB");
  });
}

/** CPU of the postmaster, which includes ended sessions. */
function engineCpuMs(): number {
  const postmasters = readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && isPostmasterOfHoldfast(pid));
  if (postmasters.length === 0) throw new Error("the engine does not run");
  return postmasters.reduce((sum, pid) => sum + cpuMsOf(Number(pid)), 0);
}

function isPostmasterOfHoldfast(pid: string): boolean {
  try {
    const program = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0] ?? "";
    return program.endsWith("/postgres") && isBelow(Number(pid), process.pid);
  } catch {
    // The process ended since it was listed.
    return false;
  }
}

function isBelow(pid: number, ancestor: number): boolean {
  if (pid === ancestor) return true;
  if (pid <= 1) return false;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return isBelow(Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]), ancestor);
}
