import type { TaskState } from "#fleet/task/task.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { EngineChangeObject } from "./engine-change.ts";
import { engineOutcomeOf, type SettledOutcome } from "./engine-change-task.ts";

/** Observed state of one change, read at each reconcile. */
export interface ObservedChange {
  /** Undefined if the operation's retention has ended, which only happens after the change was given up. */
  readonly operation: OperationObject | undefined;
  /** Undefined if it was deleted. */
  readonly service: ManagedServiceObject | undefined;
  /** True if the agent of the primary is connected. */
  readonly connected: boolean;
  /** Number of the service's changes in progress that were requested earlier. */
  readonly earlierChanges: number;
  /** State of the newest attempt's task; undefined before it is submitted. */
  readonly task: TaskState | undefined;
}

export type WaitStep = "WaitForTurn" | "WaitForMachine" | "WaitForEngine";

export type EngineChangeStep =
  /** Submit the task with this deadline. */
  | { readonly kind: "submit"; readonly deadlineMs: number }
  /** The last attempt failed: repeat it after a delay. */
  | { readonly kind: "tryAgain"; readonly afterMs: number; readonly isUncertain: boolean }
  /** The deadline has passed: read the engine's state, without another attempt. */
  | { readonly kind: "settle" }
  /** The machine does not respond: end the operation, and settle the change when the machine reconnects. */
  | { readonly kind: "giveUp"; readonly code: string; readonly message: string }
  | { readonly kind: "wait"; readonly step: WaitStep }
  | { readonly kind: "applied"; readonly role: string }
  | { readonly kind: "fail"; readonly code: string; readonly message: string }
  /** Cancel the change, because the service is being deleted. */
  | { readonly kind: "cancel" };

/**
 * Maximum number of concurrent changes of one engine, so that hanging changes do not occupy all workers of its agent.
 */
const concurrencyMax = 4;
const retryDelayMaxMs = 30_000;
/** Time after the deadline for which a connected machine is queried for the engine's state. */
const settleTimeoutMs = 60_000;

/**
 * The next step of a change. Attempts are repeated until the operation's deadline; afterwards only the engine's state
 * is read (`settle`). So every operation ends, and a failed change is never applied after its operation has ended.
 */
export function planEngineChange(change: EngineChangeObject, observed: ObservedChange, now: number): EngineChangeStep {
  const { operation, service, connected, earlierChanges, task } = observed;
  const { isUncertain, isGivenUp } = change.status;
  if (service === undefined || service.metadata.deletionRequestedAt !== undefined) return { kind: "cancel" };
  const leftMs = remainingMs(operation, now);
  const obstacle = obstacleOf(service, connected, earlierChanges);
  if (isGivenUp) return obstacle === undefined || obstacle.step === "WaitForTurn" ? { kind: "settle" } : obstacle;
  if (task === undefined) {
    if (leftMs > 0) return obstacle ?? { kind: "submit", deadlineMs: leftMs };
    return isUncertain ? settleOrGiveUp(connected, leftMs) : notDelivered(obstacle?.step);
  }
  if (task.result === undefined) {
    const step = connected ? "WaitForEngine" : "WaitForMachine";
    // The task ends at its deadline, which is the operation's.
    return { kind: "wait", step };
  }
  const outcome = engineOutcomeOf(change, task.result);
  if (outcome.kind === "applied") return outcome;
  if (outcome.kind === "refused") return { kind: "fail", code: outcome.code, message: outcome.message };
  const isUnknown = isUncertain || outcome.kind === "unknown";
  if (leftMs <= 0) {
    if (isUnknown) return settleOrGiveUp(connected, leftMs);
    return {
      kind: "fail",
      code: outcome.code,
      message: `The engine did not apply the change in time: ${outcome.message}`,
    };
  }
  const afterMs = Math.min(retryDelayMaxMs, 500 * 2 ** change.status.attempt, leftMs);
  return { kind: "tryAgain", afterMs, isUncertain: isUnknown };
}

/** The next step after the engine's state was read (`settle`). */
export function planSettled(outcome: SettledOutcome): EngineChangeStep {
  switch (outcome.kind) {
    case "applied":
      return outcome;
    case "absent":
      return {
        kind: "fail",
        code: "deadline_passed",
        message: "The engine did not apply the change in time, and will not apply it.",
      };
    case "unsupported":
      return { kind: "fail", code: "outcome_unknown", message: outcome.message };
    case "noResponse":
      return { kind: "wait", step: "WaitForEngine" };
  }
}

/** Milliseconds until the operation's deadline; negative after it. */
export function remainingMs(operation: OperationObject | undefined, now: number): number {
  return (operation?.status.deadline ?? now) - now;
}

function obstacleOf(
  { spec }: ManagedServiceObject,
  connected: boolean,
  earlierChanges: number,
): { readonly kind: "wait"; readonly step: WaitStep } | undefined {
  // Changes during a canary of an image could be rolled back with the data.
  if (spec.power === "off" || spec.canary !== undefined) return { kind: "wait", step: "WaitForEngine" };
  if (!connected) return { kind: "wait", step: "WaitForMachine" };
  return earlierChanges >= concurrencyMax ? { kind: "wait", step: "WaitForTurn" } : undefined;
}

function settleOrGiveUp(connected: boolean, leftMs: number): EngineChangeStep {
  if (connected && leftMs > -settleTimeoutMs) return { kind: "settle" };
  const message =
    "The machine has not reported whether its engine applied the change. The change is not repeated; its result is visible when the machine reconnects.";
  return { kind: "giveUp", code: "outcome_unknown", message };
}

/** The failure of a change that certainly was not applied: no task was submitted, or no attempt changed anything. */
function notDelivered(step: WaitStep | undefined): EngineChangeStep {
  const nothing = "The change was not applied and will not be.";
  switch (step) {
    case "WaitForMachine":
      return { kind: "fail", code: "machine_unreachable", message: `The machine did not respond in time. ${nothing}` };
    case "WaitForEngine":
      return { kind: "fail", code: "engine_stopped", message: `The engine was stopped for too long. ${nothing}` };
    default:
      return { kind: "fail", code: "engine_busy", message: `The engine was busy with other changes. ${nothing}` };
  }
}
