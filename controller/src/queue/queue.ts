import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import { next } from "@holdfast/common/machine.ts";
import { type QueueEffect, type QueueEvent, queueLifecycle, type QueueState } from "./queue-lifecycle.ts";

/**
 * A queue of a service as it is asked for. What its database has is the registry there; its messages are nowhere else. The id of
 * the object is that of its name in the service, so one transaction makes the object and takes the name.
 */
export type QueueObject = Resource<QueueSpec, QueueStatus>;

/** Of one service. */
export const queueQuota: Quota<QueueObject> = {
  name: "queues",
  words: "queues",
  limit: 200,
  ownerOf: serviceOfQueue,
  error: "QUEUE_LIMIT_REACHED",
};

export const queueKind = defineKind<QueueObject>("queue", {
  indexes: [serviceOfQueue, queueIdOf],
  quotas: [queueQuota],
});

/** Index: the queues of one service. */
export function serviceOfQueue({ spec }: QueueObject): string {
  return spec.serviceId;
}

/** Index: a queue by its id inside its database; two services have the same one while one is a copy of the other. */
export function queueIdOf({ spec }: QueueObject): string {
  return spec.queueId;
}

export interface QueueSpec {
  readonly serviceId: string;
  /** Id of the queue for users, and in the registry; another one when the name is used again. */
  readonly queueId: string;
  readonly databaseName: string;
  readonly visibilityTimeoutSeconds: number;
  readonly maxAttempts: number;
  readonly dlqEnabled: boolean;
}

export interface QueueStatus {
  readonly state: QueueState;
  /** Since when it is in this state. */
  readonly since: number;
  /** The generation of the spec that the registry has. */
  readonly observedGeneration: number;
  readonly errorMessage: string | null;
}

export function queueObjectId(serviceId: string, name: string): string {
  return `${serviceId}.${name}`;
}

/** A queue that nobody has begun to make. */
export function newQueue(
  { name, organizationId, ...spec }: QueueSpec & { readonly name: string; readonly organizationId: string },
  now: number,
): QueueObject {
  return {
    metadata: newMetadata(queueObjectId(spec.serviceId, name), now, { name, organizationId }),
    spec,
    status: { state: "Pending", since: now, observedGeneration: 0, errorMessage: null },
  };
}

/** A queue that its database has already. */
export function adoptedQueue(spec: Parameters<typeof newQueue>[0], now: number): QueueObject {
  const queue = newQueue(spec, now);
  return { ...queue, status: { ...queue.status, state: "Active", observedGeneration: 1 } };
}

/** The queue after an event, and what comes with it; undefined where the event means nothing. */
export function afterEvent(
  queue: QueueObject,
  event: QueueEvent,
  now: number,
  errorMessage: string | null = null,
): { readonly after: QueueObject; readonly effect: QueueEffect } | undefined {
  const row = next(queueLifecycle, queue.status.state, event);
  if (row === undefined) return undefined;
  const { deletionRequestedAt, ...kept } = { ...queue.metadata, updatedAt: now };
  const isGoing = row[2] === "Deprovisioning";
  const metadata = isGoing ? { ...kept, deletionRequestedAt: deletionRequestedAt ?? now } : kept;
  return {
    after: { ...queue, metadata, status: { ...queue.status, state: row[2], since: now, errorMessage } },
    effect: row[3],
  };
}

/** The queue with other settings, which its database has still to take. */
export function changedQueue(queue: QueueObject, change: Partial<QueueSpec>, now: number): QueueObject {
  return { ...queue, metadata: nextMetadata(queue.metadata, now), spec: { ...queue.spec, ...change } };
}
