import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlGroup } from "../os/control-group.ts";
import { TaskFailed } from "../task-failed.ts";

export interface HeadroomDeps {
  readonly group: Pick<ControlGroup, "memoryNeededBytes" | "memoryLimitBytes">;
  /** Memory that another agent needs at most. */
  readonly agentBytes: () => Promise<number>;
  /** Free memory of the host, which all its machines share. */
  readonly hostFreeBytes: () => number;
}

/**
 * Waits for the memory that a second agent needs. If the engine uses its plan's full memory, a second agent would make
 * the kernel kill the engine.
 */
export interface Headroom {
  /** Resolves once there is memory for another agent; throws TaskFailed with the figures after `withinMs`. */
  wait(withinMs: number, signal: AbortSignal): Promise<void>;
}

const pollIntervalMs = 500;
/** An agent needs more memory while it starts and takes over than an idle one. */
const startFactor = 1.5;
const minAgentBytes = 64 << 20;
const mib = 1 << 20;

export function createHeadroom({ group, agentBytes, hostFreeBytes }: HeadroomDeps): Headroom {
  /** Free memory in bytes. */
  async function free(): Promise<number> {
    const [needed, limit] = await Promise.all([group.memoryNeededBytes(), group.memoryLimitBytes()]);
    // Machines without a control group share their host's memory.
    const machineFreeBytes = needed === undefined || limit === undefined ? Number.POSITIVE_INFINITY : limit - needed;
    return Math.max(0, Math.min(machineFreeBytes, hostFreeBytes()));
  }

  return {
    async wait(withinMs, signal) {
      const requiredBytes = Math.max(minAgentBytes, (await agentBytes()) * startFactor);
      let freeBytes = await free();
      for (let waitedMs = 0; freeBytes < requiredBytes && waitedMs < withinMs; waitedMs += pollIntervalMs) {
        await sleep(pollIntervalMs, undefined, { signal });
        freeBytes = await free();
      }
      if (freeBytes >= requiredBytes) return;
      const figures =
        `A second agent needs ${Math.ceil(requiredBytes / mib)} MiB of memory, and the machine has ` +
        `${Math.floor(freeBytes / mib)} MiB free.`;
      throw new TaskFailed(
        "no_room",
        `${figures} The upgrade waits so that the engine does not run out of memory: choose a larger plan, or retry later.`,
        { retryable: true },
      );
    },
  };
}

/** Memory of this process in bytes, without file-backed pages (RssAnon). */
export async function ownMemoryBytes(): Promise<number> {
  const text = await readFile("/proc/self/status", "utf8");
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(text)?.[1] ?? 0) << 10;
}
