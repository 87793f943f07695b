import { stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { QueueObject } from "./queue.ts";

/** Observed state of one queue, read at each reconcile. */
export interface ObservedQueue {
  /** Undefined if the service was deleted. */
  readonly service: ManagedServiceObject | undefined;
  /** True if the agent of the service's primary is connected. */
  readonly connected: boolean;
  /** True while automation is paused after a clock jump, because earlier times are unreliable. */
  readonly clockJumped?: boolean;
}

export type QueueStep =
  /** The service was deleted, and the queue with it. */
  | { readonly kind: "forget" }
  /** The agent is connected: provisioning can begin. */
  | { readonly kind: "begin" }
  /** Write the settings into the database's registry. */
  | { readonly kind: "put" }
  /** Delete the queue in the database. */
  | { readonly kind: "remove" }
  | { readonly kind: "fail"; readonly message: string }
  | { readonly kind: "wait"; readonly delayMs: number | undefined; readonly reason: string }
  | { readonly kind: "settled" };

/** The next step of a queue's reconciler. */
export function planQueue(
  queue: QueueObject,
  { service, connected, clockJumped = false }: ObservedQueue,
  now: number,
): QueueStep {
  const { state, since, observedGeneration } = queue.status;
  if (service === undefined) return { kind: "forget" };
  if (service.metadata.deletionRequestedAt !== undefined)
    return { kind: "wait", delayMs: undefined, reason: "the service is being deleted" };
  const isBeingCreated = state === "Pending" || state === "Provisioning";
  const needsWork =
    isBeingCreated ||
    state === "Deprovisioning" ||
    (state === "Active" && observedGeneration < queue.metadata.generation);
  if (!needsWork) return { kind: "settled" };
  // During a canary the data may be rolled back together with the image.
  if (service.spec.power === "off" || service.spec.canary !== undefined)
    return { kind: "wait", delayMs: undefined, reason: "the engine is stopped" };
  // A negative age means that the clock was set back.
  const remainingMs = clockJumped ? stuckAfterMs : Math.min(stuckAfterMs, since + stuckAfterMs - now);
  if (isBeingCreated && remainingMs <= 0)
    return { kind: "fail", message: "The queue was not created in its database within 10 minutes." };
  if (!connected)
    return { kind: "wait", delayMs: isBeingCreated ? remainingMs : undefined, reason: "the machine does not respond" };
  if (state === "Deprovisioning") return { kind: "remove" };
  return { kind: state === "Pending" ? "begin" : "put" };
}
