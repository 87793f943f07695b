import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { TaskFailed } from "../task-failed.ts";
import type { HandOverState } from "./hand-over-state.ts";
import { listenTo } from "./last-words.ts";

/** This agent's work, as far as it can be put down and taken up again. */
export interface AgentWork {
  readonly sessionId: string;
  /** Does a controller hear this agent? */
  readonly isConnected: boolean;
  /** Is the engine in a state that it can stay in, and does nothing run but this task? */
  isIdle(taskId: string): boolean;
  /** From now on tasks that come only wait. */
  hold(): void;
  /** Stops all writing: of the journal, of settings, of observations. */
  putDown(): Promise<void>;
  takeUp(): Promise<void>;
  /** Another agent is in charge: this one ends. */
  leave(): void;
}

export interface HandOverDeps {
  readonly keeper: KeeperClient;
  readonly work: AgentWork;
  readonly logDir: string;
  readonly log: Log;
}

export interface HandOver {
  readonly main: string;
  readonly controller: string;
  readonly readyWithinMs: number;
  readonly taskId: string;
  readonly signal: AbortSignal;
  readonly progress: (step: string, pct: number) => void;
  /** Called once the keeper has the other one beside this one. */
  readonly offered: () => Promise<void>;
}

const lookEveryMs = 20;
/** What runs may go on and other work begin beside it for so long; then what comes waits until the rest is done. */
const idleWithinMs = 30_000;
const doneWithinMs = 5_000;

/**
 * Has the agent of another file take this one's place. Never resolves when that came to be: this process ends. Rejects with
 * the reason when the other one is gone and this one goes on.
 */
export async function handOver(deps: HandOverDeps, options: HandOver): Promise<never> {
  const { keeper, work, log } = deps;
  const { main, controller, readyWithinMs, taskId, signal, progress, offered } = options;
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => undefined);
  const ready = Promise.withResolvers<void>();
  const subscription = keeper.onSuccession((event) => {
    if (event.event !== "successor") return;
    if (event.state === "ready") ready.resolve();
    else gone.reject(new Error(event.reason));
  });
  const words = await listenTo(keeper, deps.logDir);
  try {
    await keeper.order({ op: "offer", main, controller });
    await offered();
    const late = sleep(readyWithinMs, undefined, { signal, ref: false }).then(() => {
      throw new Error(`It was not ready within ${readyWithinMs / 1_000} s.`);
    });
    await Promise.race([ready.promise, gone.promise, late]);
    progress("waiting", 60);
    await Promise.race([idle(work, taskId, signal), gone.promise]);
    progress("handing over", 80);
    await work.putDown();
    try {
      const state: HandOverState = { sessionId: work.sessionId };
      await keeper.order({ op: "yield", state: JSON.stringify(state) });
    } catch (error) {
      await work.takeUp();
      // It had proved itself: the machine may only have been busy.
      throw new PutOff((error as Error).message);
    }
    log.info("handed over to the next agent", { main });
    work.leave();
    return await new Promise<never>(() => undefined);
  } catch (error) {
    const wasConnected = work.isConnected;
    await keeper.order({ op: "withdraw" }).catch(() => undefined);
    await work.takeUp();
    const said = await words.last();
    const reason = `The new agent did not take over: ${(error as Error).message}${said === "" ? "" : ` It said: ${said}`}`;
    // Where this agent finds no controller either, the other one could not prove itself.
    throw new TaskFailed("failed", reason, { retryable: error instanceof PutOff || !wasConnected });
  } finally {
    subscription.close();
  }
}

/** Another attempt may well go better. */
class PutOff extends Error {}

/** Resolves at a moment at which nothing runs, with what comes held. */
async function idle(work: AgentWork, taskId: string, signal: AbortSignal): Promise<void> {
  let waitedMs = 0;
  for (; waitedMs < idleWithinMs && !work.isIdle(taskId); waitedMs += lookEveryMs) {
    await sleep(lookEveryMs, undefined, { signal });
  }
  work.hold();
  for (; !work.isIdle(taskId); waitedMs += lookEveryMs) {
    if (waitedMs > idleWithinMs + doneWithinMs) throw new PutOff("The agent is busy with tasks or with its engine.");
    await sleep(lookEveryMs, undefined, { signal });
  }
}
