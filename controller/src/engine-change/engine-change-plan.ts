import type { TaskState } from "../fleet/task/task.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import type { OperationObject } from "../operation/operation.ts";
import type { EngineChangeObject } from "./engine-change.ts";
import { engineOutcomeOf } from "./engine-change-task.ts";

/** What the world is like for one change, read fresh at each reconcile. */
export interface ObservedChange {
  readonly operation: OperationObject;
  /** Undefined when it is gone. */
  readonly service: ManagedServiceObject | undefined;
  /** Is the agent of its engine there? */
  readonly connected: boolean;
  /** How many changes of the service came before it and are not over. */
  readonly before: number;
  /** The newest attempt; undefined before it is given to the machine. */
  readonly task: TaskState | undefined;
}

export type EngineChangeStep =
  /** Give the machine the task, which has so long. */
  | { readonly kind: "submit"; readonly deadlineMs: number }
  /** What came of the last attempt is not known, or not the end: another one, after a while. */
  | { readonly kind: "tryAgain"; readonly afterMs: number }
  | { readonly kind: "wait"; readonly step: "WaitForTurn" | "WaitForMachine" | "WaitForEngine" }
  | { readonly kind: "taken"; readonly role: string }
  | { readonly kind: "fail"; readonly code: string; readonly message: string }
  /** The service goes, and all that is in it. */
  | { readonly kind: "cancel" };

/** Others of the same engine wait, so that those that hang leave its agent hands for everything else. */
const atOnce = 4;
/** The last word of an engine that would not take it in time. */
const lastTryMs = 10_000;
const slowestTryMs = 30_000;

/**
 * Pure: what to do next. A change ends when the engine has told what became of it, and no earlier: an operation that was given up
 * while its statement might still be carried out would leave a user that nobody knows of.
 */
export function planEngineChange(change: EngineChangeObject, observed: ObservedChange, now: number): EngineChangeStep {
  const { operation, service, connected, before, task } = observed;
  if (service === undefined || service.metadata.deletionRequestedAt !== undefined) return { kind: "cancel" };
  const leftMs = (operation.status.deadline ?? now) - now;
  if (task === undefined) {
    if (service.spec.power === "off") return { kind: "wait", step: "WaitForEngine" };
    if (!connected) return { kind: "wait", step: "WaitForMachine" };
    if (before >= atOnce) return { kind: "wait", step: "WaitForTurn" };
    return { kind: "submit", deadlineMs: Math.max(leftMs, lastTryMs) };
  }
  if (task.result === undefined) return { kind: "wait", step: connected ? "WaitForEngine" : "WaitForMachine" };
  const outcome = engineOutcomeOf(change, task.result);
  if (outcome.kind === "taken") return outcome;
  if (outcome.kind === "refused") return { kind: "fail", code: outcome.code, message: outcome.message };
  if (outcome.kind === "busy" && leftMs <= 0)
    return { kind: "fail", code: "engine_busy", message: `The engine would not take it in time: ${outcome.message}` };
  return { kind: "tryAgain", afterMs: Math.min(slowestTryMs, 500 * 2 ** change.status.attempt) };
}
