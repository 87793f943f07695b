import { setTimeout as sleep } from "node:timers/promises";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately, type PlatformProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import type { Random } from "@holdfast/testing/random.ts";

export type Victim = "controller" | "agent" | "machine" | "keeper" | "engine" | "etcd" | "dns" | "history";

const victims: readonly Victim[] = [
  ...Array<Victim>(3).fill("controller"),
  ...Array<Victim>(3).fill("agent"),
  ...Array<Victim>(3).fill("engine"),
  ...Array<Victim>(2).fill("machine"),
  ...Array<Victim>(2).fill("keeper"),
  ...Array<Victim>(2).fill("etcd"),
  "dns",
  "history",
];

/** Kills `count` random processes, one after another; resolves with the number of each kind. */
export async function killAtRandom(
  platform: Platform,
  random: Random,
  { kills, log }: { kills: number; log: (line: string) => void },
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let done = 0; done < kills; ) {
    // Time: the moment of the kill, which is random.
    await sleep(random.between(500, 2_500));
    const victim = random.pick(victims);
    const pids = pidsOf(victim, platform.processes());
    if (pids.length === 0) continue;
    const pid = random.pick(pids);
    if (!killImmediately(pid)) continue;
    done += 1;
    counts[victim] = (counts[victim] ?? 0) + 1;
    log(`kill ${done}: ${victim} ${pid}`);
  }
  return counts;
}

function pidsOf(victim: Victim, processes: PlatformProcesses): readonly number[] {
  const { controllers, etcd, dns, history, machines } = processes;
  const there = (pids: readonly (number | undefined)[]) => pids.filter((pid) => pid !== undefined);
  switch (victim) {
    case "controller":
      return controllers;
    case "etcd":
      return there([etcd]);
    case "dns":
      return there([dns]);
    case "history":
      return there([history]);
    case "machine":
      return machines.map(({ launcher }) => launcher);
    case "keeper":
      return there(machines.map(({ keeper }) => keeper));
    case "agent":
      return there(machines.map(({ agent }) => agent));
    case "engine":
      return there(machines.map(({ engine }) => engine));
  }
}
