import type { EngineCheck } from "../../engines/engine-driver.ts";
import type { ControlGroup } from "../../os/control-group.ts";

/** Detects processes that the kernel killed because the machine exceeded its plan's memory. */
export interface MemoryWatch {
  /** Health check of the plan's memory. A kill is reported for ten minutes after it happened. */
  check(): Promise<EngineCheck>;
  /** Number of kills so far, for `killedSince`. */
  mark(): Promise<number>;
  killedSince(mark: number): Promise<boolean>;
}

const reportPeriodMs = 10 * 60_000;

const engineAdvice = "Lower what queries, sessions or the rows of a backup use, or take a larger plan.";

/** `advice`: what users can do about a kill. */
export function createMemoryWatch(group: ControlGroup, now: () => number, advice = engineAdvice): MemoryWatch {
  let lastKills: number | undefined;
  let killed = { times: 0, lastAt: 0 };

  async function poll(): Promise<number | undefined> {
    const kills = await group.outOfMemoryKills();
    if (kills === undefined) return undefined;
    // Kills before this agent started are not reported.
    const newKills = kills - (lastKills ?? kills);
    lastKills = kills;
    if (newKills > 0)
      killed = { times: now() - killed.lastAt < reportPeriodMs ? killed.times + newKills : newKills, lastAt: now() };
    return kills;
  }

  return {
    async check() {
      if ((await poll()) === undefined) {
        const reason = "Not enforced: this host gives machines no control groups for CPU and memory.";
        return { name: "memory", status: "healthy", reason };
      }
      if (killed.times === 0 || now() - killed.lastAt >= reportPeriodMs)
        return { name: "memory", status: "healthy", reason: "" };
      const times = killed.times === 1 ? "once" : `${killed.times} times`;
      const reason =
        `Out of memory: the kernel ended processes of the machine ${times}, last at ` +
        `${new Date(killed.lastAt).toISOString()}. ${advice}`;
      return { name: "memory", status: "degraded", reason };
    },
    mark: async () => (await poll()) ?? 0,
    killedSince: async (mark) => ((await poll()) ?? 0) > mark,
  };
}
