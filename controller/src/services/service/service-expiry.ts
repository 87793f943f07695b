import type { Fleet } from "#fleet/fleet.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { canceled, findOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import { again, type ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject } from "./managed-service.ts";
import { isReachable, requestDeletion } from "./service-deletion.ts";
import { serviceEvent } from "./service-events.ts";

export interface ExpiryDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<ManagedServiceObject>, "untilRevision">;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Pick<Fleet, "observation" | "session">;
  /** True while deletions by expiry are deferred. */
  readonly expiryDeferred: () => boolean;
  readonly newId: () => string;
  readonly clock: Clock;
}

const hourMs = 3_600_000;
/** Hours before the expiry at which warnings are emitted. */
const warningHours = [24, 1] as const;

/** Action that is due for a service's time to live, or the milliseconds until the next check. */
export type ServiceExpiry =
  | { readonly action: "none"; readonly recheckInMs: number | null }
  | { readonly action: "warn"; readonly hours: number }
  | { readonly action: "announceProtection" }
  | { readonly action: "delete" };

/**
 * The action that is due now. `deferred`: true if deletions by expiry are paused, because clocks disagree or the store
 * was restored.
 */
export function expiryOf(service: ManagedServiceObject, now: number, deferred: boolean): ServiceExpiry {
  const { expiresAt, deletionProtection } = service.spec;
  if (expiresAt === null || service.metadata.deletionRequestedAt !== undefined)
    return { action: "none", recheckInMs: null };
  const remainingMs = expiresAt - now;
  if (remainingMs <= 0) {
    if (deferred) return { action: "none", recheckInMs: 60_000 };
    if (!deletionProtection) return { action: "delete" };
    return service.status.announcedProtectedExpiry
      ? { action: "none", recheckInMs: null }
      : { action: "announceProtection" };
  }
  // A service with a time to live of at most a day gets no warning a day ahead.
  const due = warningHours.filter((hours) => remainingMs <= hours * hourMs && (service.spec.ttlHours ?? 0) > hours);
  const missing = due.filter((hours) => !service.status.expiryWarnings.includes(hours));
  const nearest = missing.at(-1);
  if (nearest !== undefined) return { action: "warn", hours: nearest };
  const nextMs = warningHours.map((hours) => remainingMs - hours * hourMs).filter((ms) => ms > 0);
  return { action: "none", recheckInMs: Math.max(1, Math.min(remainingMs, ...nextMs)) };
}

/** Announces or performs the expiry of the service, in one transaction. Undefined if nothing is due. */
export async function settleExpiry(
  service: Stored<ManagedServiceObject>,
  deps: ExpiryDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome | undefined> {
  const { object } = service;
  const now = deps.clock.now();
  const expiry = expiryOf(object, now, deps.expiryDeferred());
  if (expiry.action === "none") return undefined;
  const unit = deps.begin();
  if (expiry.action === "delete") {
    const { after, operation } = requestDeletion(object, {
      operationId: deps.newId(),
      now,
      isReachable: isReachable(object, deps.fleet),
    });
    const current = await findOperation(deps.operations, object.status.operationId, signal);
    if (current !== undefined) unit.update(operationKind, current, canceled(current.object, now));
    unit.create(operationKind, operation);
    unit.update(managedServiceKind, service, after);
    unit.audit({
      organizationId: object.metadata.organizationId,
      actor: "platform",
      source: "expiry",
      action: "managed-service.delete",
      objectKind: "managed-service",
      objectId: object.metadata.id,
      result: "ok",
      requestId: operation.metadata.id,
    });
  } else if (expiry.action === "warn") {
    const expiryWarnings = [...object.status.expiryWarnings, expiry.hours];
    unit.update(managedServiceKind, service, { ...object, status: { ...object.status, expiryWarnings } });
    const expiresAt = new Date(object.spec.expiresAt ?? now).toISOString();
    unit.event(serviceEvent("service.expiring", object, { expires_at: expiresAt, hours_left: expiry.hours }));
  } else {
    unit.update(managedServiceKind, service, {
      ...object,
      status: { ...object.status, announcedProtectedExpiry: true },
    });
    unit.event(serviceEvent("service.expiry_held", object, { reason: "deletion_protection" }));
  }
  const revision = await unit.commit(signal);
  await deps.services.untilRevision(revision, 1_000);
  return again(0, expiry.action);
}
