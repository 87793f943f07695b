import type { TaskState } from "#fleet/task/task.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { EngineChangeObject } from "./engine-change.ts";
import { engineOutcomeOf, type SettledOutcome } from "./engine-change-task.ts";

/** What the world is like for one change, read fresh at each reconcile. */
export interface ObservedChange {
  /** Undefined only for a change that was given up so long ago that its operation is forgotten. */
  readonly operation: OperationObject | undefined;
  /** Undefined when it is gone. */
  readonly service: ManagedServiceObject | undefined;
  /** Is the agent of its engine there? */
  readonly connected: boolean;
  /** How many changes of the service came before it and are still tried. */
  readonly before: number;
  /** The newest attempt; undefined before it is given to the machine. */
  readonly task: TaskState | undefined;
}

export type WaitStep = "WaitForTurn" | "WaitForMachine" | "WaitForEngine";

export type EngineChangeStep =
  /** Give the machine the task, which has so long. */
  | { readonly kind: "submit"; readonly deadlineMs: number }
  /** The last attempt did not bring it: another one, after a while. */
  | { readonly kind: "tryAgain"; readonly afterMs: number; readonly isUncertain: boolean }
  /** Nothing is tried any more: ask the engine what it has. */
  | { readonly kind: "settle" }
  /** The machine does not say what it has: the operation ends, and is settled when the machine is back. */
  | { readonly kind: "giveUp"; readonly code: string; readonly message: string }
  | { readonly kind: "wait"; readonly step: WaitStep }
  | { readonly kind: "taken"; readonly role: string }
  | { readonly kind: "fail"; readonly code: string; readonly message: string }
  /** The service goes, and all that is in it. */
  | { readonly kind: "cancel" };

/** Others of the same engine wait, so that those that hang leave its agent hands for everything else. */
const atOnce = 4;
const slowestTryMs = 30_000;
/** So long after the deadline a machine that is there may take to say what its engine has. */
const lastWordMs = 60_000;

/**
 * Pure: what to do next. Until its deadline a change is tried; past it nothing is tried any more, and the engine is asked what
 * it has. So an operation always ends, and what it failed to do is not done after its end.
 */
export function planEngineChange(change: EngineChangeObject, observed: ObservedChange, now: number): EngineChangeStep {
  const { operation, service, connected, before, task } = observed;
  const { isUncertain, isGivenUp } = change.status;
  if (service === undefined || service.metadata.deletionRequestedAt !== undefined) return { kind: "cancel" };
  const leftMs = leftOf(operation, now);
  const obstacle = obstacleOf(service, connected, before);
  if (isGivenUp) return obstacle === undefined || obstacle.step === "WaitForTurn" ? { kind: "settle" } : obstacle;
  if (task === undefined) {
    if (leftMs > 0) return obstacle ?? { kind: "submit", deadlineMs: leftMs };
    return isUncertain ? lastWord(connected, leftMs) : untouched(obstacle?.step);
  }
  if (task.result === undefined) {
    const step = connected ? "WaitForEngine" : "WaitForMachine";
    // It has ended at its deadline, or will within seconds.
    return { kind: "wait", step };
  }
  const outcome = engineOutcomeOf(change, task.result);
  if (outcome.kind === "taken") return outcome;
  if (outcome.kind === "refused") return { kind: "fail", code: outcome.code, message: outcome.message };
  const isUnknown = isUncertain || outcome.kind === "unknown";
  if (leftMs <= 0) {
    if (isUnknown) return lastWord(connected, leftMs);
    return { kind: "fail", code: outcome.code, message: `The engine would not take it in time: ${outcome.message}` };
  }
  const afterMs = Math.min(slowestTryMs, 500 * 2 ** change.status.attempt, leftMs);
  return { kind: "tryAgain", afterMs, isUncertain: isUnknown };
}

/** Pure: what follows from what the engine said when nothing is tried any more. */
export function planSettled(outcome: SettledOutcome): EngineChangeStep {
  switch (outcome.kind) {
    case "taken":
      return outcome;
    case "absent":
      return { kind: "fail", code: "deadline_passed", message: "The engine did not take it in time, and will not." };
    case "untold":
      return { kind: "fail", code: "outcome_unknown", message: outcome.message };
    case "silent":
      return { kind: "wait", step: "WaitForEngine" };
  }
}

/** Milliseconds until the operation's deadline; negative past it. */
export function leftOf(operation: OperationObject | undefined, now: number): number {
  return (operation?.status.deadline ?? now) - now;
}

function obstacleOf(
  { spec }: ManagedServiceObject,
  connected: boolean,
  before: number,
): { readonly kind: "wait"; readonly step: WaitStep } | undefined {
  // What an image that is tried does to the data may be undone with it.
  if (spec.power === "off" || spec.trial !== undefined) return { kind: "wait", step: "WaitForEngine" };
  if (!connected) return { kind: "wait", step: "WaitForMachine" };
  return before >= atOnce ? { kind: "wait", step: "WaitForTurn" } : undefined;
}

function lastWord(connected: boolean, leftMs: number): EngineChangeStep {
  if (connected && leftMs > -lastWordMs) return { kind: "settle" };
  const message =
    "The machine has not said whether its engine took it. It is not tried again; what the engine has is shown when the machine is back.";
  return { kind: "giveUp", code: "outcome_unknown", message };
}

/** The machine never had it, or said each time that nothing was changed. */
function untouched(step: WaitStep | undefined): EngineChangeStep {
  const nothing = "Nothing was changed, and nothing will be.";
  switch (step) {
    case "WaitForMachine":
      return { kind: "fail", code: "machine_unreachable", message: `The machine did not answer in time. ${nothing}` };
    case "WaitForEngine":
      return { kind: "fail", code: "engine_stopped", message: `The engine was stopped for too long. ${nothing}` };
    default:
      return { kind: "fail", code: "engine_busy", message: `The engine was busy with other changes. ${nothing}` };
  }
}
