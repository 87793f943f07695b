import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { type MachineResizeDeps, resizeMachine } from "#fleet/placement/resize-machine.ts";
import { operationKind, type OperationObject, warned } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ArchiveObject } from "../backup/archive/archive.ts";
import { smallerPlanWarnings } from "../backup/log/lowered-settings.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { refuseWhileBusy } from "../service/service-commands.ts";
import { type RequestedSize, beginResizing, hasSize, requireResizable, requireSize } from "./size-request.ts";
import { machineSizeOf, sizeChangeOf, largerOfEach } from "./service-size.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";

export interface ResizeDeps extends MachineResizeDeps {
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly catalog: CatalogData;
  readonly fleet: Pick<Fleet, "observation" | "session">;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The result of a resize in the caller's transaction. */
export interface Resized {
  readonly after: ManagedServiceObject;
  /** The operation; undefined if the service already changes to that size. */
  readonly operation: OperationObject | undefined;
}

/**
 * Resizes a service: adds the claims of quota and of host capacity and the operation to the transaction; the caller
 * writes the service. Throws WRONG_STATE, OPERATION_IN_PROGRESS, INVALID_REQUEST, NOT_POSSIBLE and QUOTA_EXCEEDED.
 *
 * A change of size is `spec.resizing` of the service until it has ended. `size-plan.ts` orders the steps: machines grow
 * before the engine gets its new settings and shrink after it applied them. `resize-outcome.ts` decides when the change
 * has failed and rolls it back. `grow-storage.ts` requests a change itself when storage with autoscaling is low.
 */
export async function resizeService(
  service: ManagedServiceObject,
  requested: RequestedSize,
  inProgress: OperationObject | undefined,
  unit: Changes,
  deps: ResizeDeps,
  signal: AbortSignal,
): Promise<Resized> {
  const { catalog, clock } = deps;
  const isSame = sizeChangeOf(inProgress) !== undefined && hasSize(service, requested);
  if (isSame && inProgress?.status.rollback === undefined) return { after: service, operation: undefined };
  requireResizable(service, inProgress);
  refuseWhileBusy(service, inProgress);
  if (hasSize(service, requested)) throw new HoldfastError("NOT_POSSIBLE", sameSizeMessage(service, requested));
  const observed = service.spec.nodes.map(({ id }) => deps.fleet.observation(id)?.instance);
  const to = requireSize(service, requested, { catalog, observed });
  const growthGb = to.storageSizeGb - service.spec.storageSizeGb;
  if (growthGb > 0)
    await deps.quotas.claim(unit, service.metadata.organizationId, { storageGb: growthGb * service.spec.nodes.length });
  const size = largerOfEach(machineSizeOf(service.spec, catalog), machineSizeOf(to, catalog));
  for (const { id } of service.spec.nodes) await resizeMachine(id, size, unit, deps, signal);
  const asOf = { operationId: deps.newId(), now: clock.now() };
  const { after, operation } = beginResizing(service, to, catalog, asOf);
  const archive = deps.archives.get(service.metadata.id)?.object;
  const isOtherPlan = to.planName !== service.spec.planName;
  const warnings = archive === undefined || !isOtherPlan ? [] : smallerPlanWarnings(archive, after, catalog);
  const withWarnings = warned(operation, warnings);
  unit.create(operationKind, withWarnings);
  return { after, operation: withWarnings };
}

function sameSizeMessage({ spec }: ManagedServiceObject, { planName }: RequestedSize): string {
  if (planName !== undefined) return `The service already has plan ${spec.planName}. Choose another plan.`;
  return `The service already has ${spec.storageSizeGb} GB. Request more.`;
}
