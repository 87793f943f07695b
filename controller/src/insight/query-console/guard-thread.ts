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

/** CPU time of the thread: on a busy host no statement counts as complex. */
const cpuMaxMs = 250;
const elapsedMaxMs = 5_000;
/** Limit for the start, until the parser is loaded. */
const readyWithinMs = 20_000;

/** The guards of all engines, each with a thread of its own. */
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

/** The thread starts with the first statement, and again after a statement that it did not survive. */
export function createGuardThread({ guardWorker }: Pick<EngineConsole, "guardWorker">): GuardThread {
  const exclusive = createMutex();
  let thread: Promise<Worker> | undefined;

  async function start(): Promise<Worker> {
    const worker = new Worker(guardWorker, {
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    worker.unref();
    await nextMessage(worker, readyWithinMs);
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

/** Rejects when the thread has used its CPU time, unless its message came before. */
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

/** The thread's next message; rejects when the thread ends, or sends none in time. */
function nextMessage(worker: Worker, ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => ended(new Error("no message in time")), ms);
    const onMessage = (message: unknown) => {
      cleanUp();
      resolve(message);
    };
    const ended = (error: unknown) => {
      cleanUp();
      reject(error instanceof Error ? error : new Error("the thread has ended"));
    };
    const cleanUp = () => {
      clearTimeout(late);
      worker.off("message", onMessage).off("error", ended).off("exit", ended);
    };
    worker.on("message", onMessage).on("error", ended).on("exit", ended);
  });
}
