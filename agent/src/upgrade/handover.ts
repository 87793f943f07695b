import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import { TaskFailed } from "../task-failed.ts";
import type { HandoverState } from "./takeover.ts";
import { followNewAgentLog } from "./handover-log.ts";

/** Work of this agent, as far as it can be suspended and resumed. */
export interface AgentWork {
  readonly sessionId: string;
  /** True while this agent has a session with a controller. */
  readonly isConnected: boolean;
  /** True if the engine is in a stable state and no task but this one runs. */
  isIdle(taskId: string): boolean;
  /** Queues tasks from now on instead of starting them. */
  pauseTasks(): void;
  /** Stops all writing: of the journal, settings and observations. */
  suspend(): Promise<void>;
  resume(): Promise<void>;
  /** Ends this agent, since another one is in charge. */
  exit(): void;
}

export interface HandoverDeps {
  readonly keeper: KeeperClient;
  readonly work: AgentWork;
  readonly logDir: string;
  readonly log: Log;
}

export interface HandoverOptions {
  readonly main: string;
  readonly controller: string;
  readonly readyWithinMs: number;
  readonly taskId: string;
  readonly signal: AbortSignal;
  readonly progress: (step: string, pct: number) => void;
  /** Called once the keeper has started the new agent. */
  readonly onOffered: () => Promise<void>;
}

const pollIntervalMs = 20;
/** Waits this long for an idle moment while new tasks may start; then new tasks are queued. */
const idleWithinMs = 30_000;
const finishWithinMs = 5_000;

/**
 * Hands over to an agent of another release. Never resolves after a handover, since this process ends. Rejects with the
 * reason if the new agent ended and this one remains in charge.
 */
export async function handOver(deps: HandoverDeps, options: HandoverOptions): Promise<never> {
  const { keeper, work, log } = deps;
  const { main, controller, readyWithinMs, taskId, signal, progress, onOffered } = options;
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  const ready = Promise.withResolvers<void>();
  const subscription = keeper.onHandover((event) => {
    if (event.event !== "successor") return;
    if (event.state === "ready") ready.resolve();
    else ended.reject(new Error(event.reason));
  });
  const newAgentLog = await followNewAgentLog(keeper, deps.logDir);
  try {
    await keeper.order({ op: "offer", main, controller });
    await onOffered();
    const late = sleep(readyWithinMs, undefined, { signal, ref: false }).then(() => {
      throw new Error(`It was not ready after ${readyWithinMs / 1_000} s.`);
    });
    await Promise.race([ready.promise, ended.promise, late]);
    progress("waiting", 60);
    await Promise.race([untilIdle(work, taskId, signal), ended.promise]);
    progress("handing over", 80);
    await work.suspend();
    try {
      const state: HandoverState = { sessionId: work.sessionId };
      await keeper.order({ op: "yield", state: JSON.stringify(state) });
    } catch (error) {
      await work.resume();
      // The new agent had connected to a controller, so the machine may only have been busy.
      throw new Postponed((error as Error).message);
    }
    log.info("handed over to the next agent", { main });
    work.exit();
    return await new Promise<never>(() => undefined);
  } catch (error) {
    const wasConnected = work.isConnected;
    await keeper.order({ op: "withdraw" }).catch(() => undefined);
    await work.resume();
    const output = await newAgentLog.failureReason();
    const suffix = output === "" ? "" : ` Last output: ${output}`;
    const reason = `The new agent did not take over: ${(error as Error).message}${suffix}`;
    // If this agent has no controller either, the new one could not connect, so the attempt may be repeated.
    throw new TaskFailed("failed", reason, { retryable: error instanceof Postponed || !wasConnected });
  } finally {
    subscription.close();
  }
}

/** The handover did not happen for a temporary reason; another attempt may succeed. */
class Postponed extends Error {}

/** Resolves once no task runs, with new tasks queued. */
async function untilIdle(work: AgentWork, taskId: string, signal: AbortSignal): Promise<void> {
  let waitedMs = 0;
  for (; waitedMs < idleWithinMs && !work.isIdle(taskId); waitedMs += pollIntervalMs) {
    await sleep(pollIntervalMs, undefined, { signal });
  }
  work.pauseTasks();
  for (; !work.isIdle(taskId); waitedMs += pollIntervalMs) {
    if (waitedMs > idleWithinMs + finishWithinMs)
      throw new Postponed("The agent is busy with tasks or with its engine.");
    await sleep(pollIntervalMs, undefined, { signal });
  }
}
