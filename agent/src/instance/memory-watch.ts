import type { EngineCheck } from "../engines/engine-driver.ts";
import type { ControlGroup } from "../os/control-group.ts";

/** What the plan's memory does to the engine: the kernel ends what does not fit, and counts. */
export interface MemoryWatch {
  /** How the plan's memory is doing; what happened stays told for a while after the engine is back. */
  check(): Promise<EngineCheck>;
  /** How often the kernel ended something until now; for `endedSince`. */
  mark(): Promise<number>;
  endedSince(mark: number): Promise<boolean>;
}

const toldForMs = 10 * 60_000;

export function createMemoryWatch(group: ControlGroup, now: () => number): MemoryWatch {
  let seen: number | undefined;
  let ended = { times: 0, lastAt: 0 };

  async function look(): Promise<number | undefined> {
    const kills = await group.outOfMemoryKills();
    if (kills === undefined) return undefined;
    // What was before this agent is not news.
    const fresh = kills - (seen ?? kills);
    seen = kills;
    if (fresh > 0) ended = { times: now() - ended.lastAt < toldForMs ? ended.times + fresh : fresh, lastAt: now() };
    return kills;
  }

  return {
    async check() {
      if ((await look()) === undefined) {
        const reason = "Not enforced: this host gives machines no control groups for CPU and memory.";
        return { name: "memory", status: "healthy", reason };
      }
      if (ended.times === 0 || now() - ended.lastAt >= toldForMs)
        return { name: "memory", status: "healthy", reason: "" };
      const times = ended.times === 1 ? "once" : `${ended.times} times`;
      const reason = `Out of memory: the kernel ended processes of the engine ${times}, last at ${new Date(ended.lastAt).toISOString()}. Lower what queries and sessions use, or take a larger plan.`;
      return { name: "memory", status: "degraded", reason };
    },
    mark: async () => (await look()) ?? 0,
    endedSince: async (mark) => ((await look()) ?? 0) > mark,
  };
}
