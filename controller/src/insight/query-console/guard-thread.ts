import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { EngineConsole } from "./engine-console.ts";
import type { StatementVerdict } from "./statement-verdict.ts";

/** Checks statements one after the other in a worker thread, each within a limit of CPU time. */
export interface GuardThread {
  check(sql: string): Promise<StatementVerdict>;
  close(): Promise<void>;
}

/**
 * Limit of the thread's CPU time per statement. A limit of elapsed time would refuse simple statements on a busy host.
 */
const cpuMaxMs = 250;
const elapsedMaxMs = 5_000;
/** Limit for the start, until the parser is loaded. */
const startTimeoutMs = 20_000;

/** The guards of all engines, each with a separate thread. */
export interface GuardThreads {
  of(engine: EngineConsole): GuardThread;
  close(): Promise<void>;
}

export function createGuardThreads(): GuardThreads {
  const threads = new Map<EngineConsole, GuardThread>();
  return {
    of(engine) {
      const thread = threads.get(engine) ?? createGuardThread(engine);
      threads.set(engine, thread);
      return thread;
    },
    async close() {
      await Promise.all([...threads.values()].map((thread) => thread.close()));
    },
  };
}

/** Creates a guard. Its thread is started for the first statement, and after a statement that ended the thread. */
export function createGuardThread({ guardWorker }: Pick<EngineConsole, "guardWorker">): GuardThread {
  const exclusive = createMutex();
  let thread: Promise<Worker> | undefined;

  async function start(): Promise<Worker> {
    const worker = new Worker(guardWorker, {
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    worker.unref();
    await nextMessage(worker, startTimeoutMs);
    return worker;
  }

  return {
    check: (sql) =>
      exclusive(async () => {
        thread ??= start();
        let worker: Worker | undefined;
        try {
          worker = await thread;
          const verdict = nextMessage(worker, elapsedMaxMs);
          worker.postMessage(sql);
          return (await Promise.race([verdict, rejectWhenSpent(worker, verdict)])) as StatementVerdict;
        } catch (error) {
          thread = undefined;
          if (worker === undefined) throw error;
          await worker.terminate();
          return { refused: "The statement is too complex to be checked.", position: 0 };
        }
      }),
    async close() {
      await (await thread?.catch(() => undefined))?.terminate();
    },
  };
}

/** Rejects once the thread has used its CPU time, unless its message arrives first. */
async function rejectWhenSpent(worker: Worker, verdict: Promise<unknown>): Promise<never> {
  let finished = false;
  const done = () => void (finished = true);
  verdict.then(done, done);
  const before = await worker.cpuUsage();
  for (;;) {
    await sleep(cpuMaxMs, undefined, { ref: false });
    if (finished) return new Promise(() => undefined);
    const { user, system } = await worker.cpuUsage(before);
    if (user + system > cpuMaxMs * 1_000) throw new Error("the CPU time is used up");
  }
}

/** Resolves to the thread's next message; rejects if the thread ends, or sends none in time. */
function nextMessage(worker: Worker, ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => onEnd(new Error("no message in time")), ms);
    const onMessage = (message: unknown) => {
      cleanUp();
      resolve(message);
    };
    const onEnd = (error: unknown) => {
      cleanUp();
      reject(error instanceof Error ? error : new Error("the thread has ended"));
    };
    const cleanUp = () => {
      clearTimeout(timeout);
      worker.off("message", onMessage).off("error", onEnd).off("exit", onEnd);
    };
    worker.on("message", onMessage).on("error", onEnd).on("exit", onEnd);
  });
}
