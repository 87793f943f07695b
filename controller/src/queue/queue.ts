import { next } from "@holdfast/common/machine.ts";
import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import { type QueueEffect, type QueueEvent, queueLifecycle, type QueueState } from "./queue-lifecycle.ts";

/**
 * A queue of a service with its desired settings. The registry in its database has the applied settings, and the
 * messages. The object's id contains service and name, so that one transaction creates the queue and claims the name.
 */
export type QueueObject = Resource<QueueSpec, QueueStatus>;

/** Maximum number of queues of a service. */
export const queueQuota: Quota<QueueObject> = {
  name: "queues",
  label: "queues",
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

/** Index: queues by public id. After a fork a service and its copy have queues of the same id, until adoption. */
export function queueIdOf({ spec }: QueueObject): string {
  return spec.queueId;
}

export interface QueueSpec {
  readonly serviceId: string;
  /** Public id, also in the registry. A later queue of the same name has another id. */
  readonly queueId: string;
  readonly databaseName: string;
  readonly visibilityTimeoutSeconds: number;
  readonly maxAttempts: number;
  readonly dlqEnabled: boolean;
}

export interface QueueStatus {
  readonly state: QueueState;
  /** Time at which the state was entered, in milliseconds since 1970. */
  readonly since: number;
  /** The generation whose settings the registry has. */
  readonly observedGeneration: number;
  readonly errorMessage: string | null;
}

export function queueObjectId(serviceId: string, name: string): string {
  return `${serviceId}.${name}`;
}

/** Creates a queue in state Pending. */
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

/** Creates an Active queue for a row that a registry has. */
export function adoptedQueue(spec: Parameters<typeof newQueue>[0], now: number): QueueObject {
  const queue = newQueue(spec, now);
  return { ...queue, status: { ...queue.status, state: "Active", observedGeneration: 1 } };
}

/** The queue after an event, and the event's effect; undefined if the event does not apply in the current state. */
export function afterEvent(
  queue: QueueObject,
  event: QueueEvent,
  now: number,
  errorMessage: string | null = null,
): { readonly after: QueueObject; readonly effect: QueueEffect } | undefined {
  const row = next(queueLifecycle, queue.status.state, event);
  if (row === undefined) return undefined;
  const { deletionRequestedAt, ...retained } = { ...queue.metadata, updatedAt: now };
  const isDeleting = row[2] === "Deprovisioning";
  const metadata = isDeleting ? { ...retained, deletionRequestedAt: deletionRequestedAt ?? now } : retained;
  return {
    after: { ...queue, metadata, status: { ...queue.status, state: row[2], since: now, errorMessage } },
    effect: row[3],
  };
}

/** The queue with changed settings and a higher generation. */
export function changedQueue(queue: QueueObject, change: Partial<QueueSpec>, now: number): QueueObject {
  return { ...queue, metadata: nextMetadata(queue.metadata, now), spec: { ...queue.spec, ...change } };
}
