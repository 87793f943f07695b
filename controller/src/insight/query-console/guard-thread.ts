import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { createLane } from "@holdfast/common/lane.ts";
import type { Judgement } from "./console-guard.ts";

/** Judges statements one after the other, each within a bound of time. */
export interface GuardThread {
  judge(sql: string): Promise<Judgement>;
  close(): Promise<void>;
}

/** Of the thread's own time: a busy host makes no statement a complex one. */
const withinMs = 250;
const longestMs = 5_000;
/** Until the thread has its parser. */
const readyWithinMs = 20_000;

/** The thread starts with the first statement, and anew after one that it did not survive. */
export function createGuardThread(): GuardThread {
  const lane = createLane(1);
  let thread: Promise<Worker> | undefined;

  async function start(): Promise<Worker> {
    const worker = new Worker(new URL("./guard-worker.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    worker.unref();
    await answer(worker, readyWithinMs);
    return worker;
  }

  return {
    judge: (sql) =>
      lane.run(async () => {
        thread ??= start();
        let worker: Worker | undefined;
        try {
          worker = await thread;
          const told = answer(worker, longestMs);
          worker.postMessage(sql);
          return (await Promise.race([told, spent(worker, told)])) as Judgement;
        } catch (error) {
          thread = undefined;
          if (worker === undefined) throw error;
          await worker.terminate();
          return { refused: "The statement is too complex to be judged.", position: 0 };
        }
      }),
    async close() {
      await (await thread?.catch(() => undefined))?.terminate();
    },
  };
}

/** Rejects when the thread has used its time, unless it has answered before. */
async function spent(worker: Worker, told: Promise<unknown>): Promise<never> {
  let over = false;
  const done = () => void (over = true);
  told.then(done, done);
  const before = await worker.cpuUsage();
  for (;;) {
    await sleep(withinMs, undefined, { ref: false });
    if (over) return new Promise(() => undefined);
    const { user, system } = await worker.cpuUsage(before);
    if (user + system > withinMs * 1_000) throw new Error("it takes too long");
  }
}

/** The next message; rejects when the thread ends or says nothing in time. */
function answer(worker: Worker, ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => ended(new Error("no answer in time")), ms);
    const onMessage = (message: unknown) => {
      leave();
      resolve(message);
    };
    const ended = (error: unknown) => {
      leave();
      reject(error instanceof Error ? error : new Error("the thread has ended"));
    };
    const leave = () => {
      clearTimeout(late);
      worker.off("message", onMessage).off("error", ended).off("exit", ended);
    };
    worker.on("message", onMessage).on("error", ended).on("exit", ended);
  });
}
