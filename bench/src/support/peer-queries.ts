import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

type Answers = Readonly<Record<string, (query: never) => Promise<unknown>>>;

/** Messages between a measured process and the measuring program. */
export type Query = { readonly number: number; readonly query: string };
export type Answer = { readonly number: number; readonly value?: unknown; readonly error?: string };

/**
 * Responds to queries of the parent: `{query: name, ...}`. Besides the given names it has `usage`, after a garbage
 * collection, and `loop`: delay of the event loop since the last such query in milliseconds, including its own
 * resolution of 1 ms.
 */
export function answerQueries(answers: Answers): void {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const handlers: Answers = { usage, loop, ...answers };
  process.once("disconnect", () => process.exit());
  process.on("message", (message: Query) => void answer(message));

  async function answer(message: Query): Promise<void> {
    const { number, query } = message;
    try {
      const value = await handlers[query]?.(message as never);
      process.send?.({ number, value } satisfies Answer);
    } catch (error) {
      process.send?.({ number, error: String(error) } satisfies Answer);
    }
  }

  async function loop() {
    const lag = { p99Ms: delays.percentile(99) / 1e6, maxMs: delays.max / 1e6 };
    delays.enable();
    delays.reset();
    return lag;
  }
}

export interface Usage {
  readonly rssBytes: number;
  /** CPU since the process started, without the garbage collections of these queries. */
  readonly cpuUs: number;
}

async function usage(): Promise<Usage> {
  // With pauses: with ten thousand streams each collection takes most of a second, and longer pauses cause time-outs.
  for (let round = 0; round < 3; round += 1) {
    const { user, system } = process.cpuUsage();
    globalThis.gc?.();
    const after = process.cpuUsage();
    collectingUs += after.user + after.system - user - system;
    await sleep(betweenMs);
  }
  const { user, system } = process.cpuUsage();
  return { rssBytes: process.memoryUsage.rss(), cpuUs: user + system - collectingUs };
}

const betweenMs = 100;
let collectingUs = 0;
