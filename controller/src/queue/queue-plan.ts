import { stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { QueueObject } from "./queue.ts";

/** What the world is like for one queue, read fresh at each reconcile. */
export interface ObservedQueue {
  /** Undefined when it is gone. */
  readonly service: ManagedServiceObject | undefined;
  /** Is the agent of its engine there? */
  readonly connected: boolean;
  /** A while ago, so that times of before say nothing. */
  readonly clockJumped?: boolean;
}

export type QueueStep =
  /** Its service is gone, and all that was in it. */
  | { readonly kind: "forget" }
  /** The agent can begin. */
  | { readonly kind: "begin" }
  /** Have the database take the settings. */
  | { readonly kind: "put" }
  /** Have the database delete it. */
  | { readonly kind: "remove" }
  | { readonly kind: "fail"; readonly message: string }
  | { readonly kind: "wait"; readonly forMs: number | undefined; readonly why: string }
  | { readonly kind: "settled" };

/** Pure: what to do next. */
export function planQueue(
  queue: QueueObject,
  { service, connected, clockJumped = false }: ObservedQueue,
  now: number,
): QueueStep {
  const { state, since, observedGeneration } = queue.status;
  if (service === undefined) return { kind: "forget" };
  if (service.metadata.deletionRequestedAt !== undefined)
    return { kind: "wait", forMs: undefined, why: "the service goes" };
  const isBeingMade = state === "Pending" || state === "Provisioning";
  const isAsked =
    isBeingMade || state === "Deprovisioning" || (state === "Active" && observedGeneration < queue.metadata.generation);
  if (!isAsked) return { kind: "settled" };
  // What an image that is tried does to the data may be undone with it.
  if (service.spec.power === "off" || service.spec.trial !== undefined)
    return { kind: "wait", forMs: undefined, why: "the engine is stopped" };
  // Less than nothing: the clock was put back.
  const leftMs = clockJumped ? stuckAfterMs : Math.min(stuckAfterMs, since + stuckAfterMs - now);
  if (isBeingMade && leftMs <= 0)
    return { kind: "fail", message: "The database did not take the queue within 10 minutes." };
  if (!connected) return { kind: "wait", forMs: isBeingMade ? leftMs : undefined, why: "the machine does not answer" };
  if (state === "Deprovisioning") return { kind: "remove" };
  return { kind: state === "Pending" ? "begin" : "put" };
}
