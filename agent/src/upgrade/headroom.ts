import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlGroup } from "../os/control-group.ts";
import { TaskFailed } from "../task-failed.ts";

export interface HeadroomDeps {
  readonly group: Pick<ControlGroup, "memoryNeededBytes" | "memoryLimitBytes">;
  /** Memory that another agent takes at the most. */
  readonly agentBytes: () => Promise<number>;
  /** What the host has left, for all its machines. */
  readonly hostFreeBytes: () => number;
}

/** A second agent beside an engine that needs all that the plan has would get the engine ended by the kernel. */
export interface Headroom {
  /** Resolves when there is memory for another agent; throws TaskFailed with the figures when there is none in time. */
  wait(withinMs: number, signal: AbortSignal): Promise<void>;
}

const lookEveryMs = 500;
/** An agent takes more while it starts and takes over than one that has been at rest. */
const startFactor = 1.5;
const leastAgentBytes = 64 << 20;
const mib = 1 << 20;

export function createHeadroom({ group, agentBytes, hostFreeBytes }: HeadroomDeps): Headroom {
  /** Bytes that may be taken without harm to what is there. */
  async function free(): Promise<number> {
    const [needed, limit] = await Promise.all([group.memoryNeededBytes(), group.memoryLimitBytes()]);
    // Machines without a group of their own share their host's memory.
    const own = needed === undefined || limit === undefined ? Number.POSITIVE_INFINITY : limit - needed;
    return Math.max(0, Math.min(own, hostFreeBytes()));
  }

  return {
    async wait(withinMs, signal) {
      const wanted = Math.max(leastAgentBytes, (await agentBytes()) * startFactor);
      let left = await free();
      for (let waitedMs = 0; left < wanted && waitedMs < withinMs; waitedMs += lookEveryMs) {
        await sleep(lookEveryMs, undefined, { signal });
        left = await free();
      }
      if (left >= wanted) return;
      const figures = `A second agent beside the engine needs ${Math.ceil(wanted / mib)} MiB of memory, and the machine has ${Math.floor(left / mib)} MiB left.`;
      throw new TaskFailed(
        "no_room",
        `${figures} Its engine is not risked for that: take a larger plan, or try again when less is in use.`,
        { retryable: true },
      );
    },
  };
}

/** Of this process: what it alone has in memory, without the program's own pages. */
export async function ownMemoryBytes(): Promise<number> {
  const text = await readFile("/proc/self/status", "utf8");
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) << 10;
}
