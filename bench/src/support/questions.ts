import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

type Answers = Readonly<Record<string, (question: never) => Promise<unknown>>>;

/** What goes over the channel between a measured process and the program that measures it. */
export type Question = { readonly number: number; readonly ask: string };
export type Answer = { readonly number: number; readonly value?: unknown; readonly error?: string };

/**
 * Answers what the parent asks: `{ask: name, ...}`; besides the given names also `usage`, after a collection of garbage, and
 * `loop`: how late the event loop was since it was last asked for it, ms, with its own resolution of 1 ms in it.
 */
export function answerQuestions(answers: Answers): void {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  const known: Answers = { usage, loop, ...answers };
  process.once("disconnect", () => process.exit());
  process.on("message", (question: Question) => void answer(question));

  async function answer(question: Question): Promise<void> {
    const { number, ask } = question;
    try {
      const value = await known[ask]?.(question as never);
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
  /** Since the process began; its own collections for this question are not in it. */
  readonly cpuUs: number;
}

async function usage(): Promise<Usage> {
  // Not in a row: with ten thousand streams each takes most of a second, and whoever waits for longer gives up.
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
