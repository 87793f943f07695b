import { HoldfastError } from "@holdfast/common/errors.ts";
import { again, type ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject } from "../service/managed-service.ts";
import type { ObservedService } from "../service/reconcile/observed-service.ts";
import { serviceEvent } from "../service/service-events.ts";
import { type ResizeDeps, resizeService } from "./resize-service.ts";
import { autoscaleTargetGb } from "./autoscale-target.ts";
import { type LastGrowth, autoscaleOf } from "./storage-autoscale.ts";

export interface StorageGrowthDeps extends ResizeDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<unknown>, "untilRevision">;
}

/**
 * Starts a resize of a service with autoscaling and low storage, as a request of its user would; undefined if none is
 * due. A refusal by quota or host is announced once and retried later.
 */
export async function growStorage(
  service: Stored<ManagedServiceObject>,
  observe: () => ObservedService,
  deps: StorageGrowthDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome | undefined> {
  const { object } = service;
  // Do not observe services without autoscaling.
  if (!autoscaleOf(object.spec).enabled) return undefined;
  const now = deps.clock.now();
  const toGb = autoscaleTargetGb(object, observe(), now);
  if (toGb === undefined) return undefined;
  const unit = deps.begin();
  let requestId = "";
  try {
    const { after, operation } = await resizeService(object, { storageSizeGb: toGb }, undefined, unit, deps, signal);
    requestId = operation?.metadata.id ?? "";
    unit.update(managedServiceKind, service, withLastGrowth(after, { toGb, at: now }));
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return refuse(service, { toGb, at: now, refused: error.message }, deps, signal);
  }
  unit.audit({
    organizationId: object.metadata.organizationId,
    actor: "platform",
    source: "autoscale",
    action: "managed-service.expand",
    objectKind: "managed-service",
    objectId: object.metadata.id,
    result: "ok",
    requestId,
  });
  await deps.services.untilRevision(await unit.commit(signal), 1_000);
  return again(0, "autoscale");
}

async function refuse(
  service: Stored<ManagedServiceObject>,
  record: LastGrowth & { readonly refused: string },
  deps: StorageGrowthDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome> {
  const { object } = service;
  const before = object.status.autoscale;
  const unit = deps.begin();
  unit.update(managedServiceKind, service, withLastGrowth(object, record));
  if (before?.refused === undefined || before.toGb !== record.toGb) {
    const { toGb, refused } = record;
    const data = { storage_size_gb: object.spec.storageSizeGb, wanted_size_gb: toGb };
    unit.event(serviceEvent("service.autoscale_failed", object, { ...data, reason: refused }));
  }
  await deps.services.untilRevision(await unit.commit(signal), 1_000);
  return again(0, "autoscale refused");
}

function withLastGrowth(service: ManagedServiceObject, autoscale: LastGrowth): ManagedServiceObject {
  return { ...service, status: { ...service.status, autoscale } };
}
