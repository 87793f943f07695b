import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { type MachineResizeDeps, resizeMachine } from "#fleet/placement/resize-machine.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { refuseWhileBusy } from "../service/service-verbs.ts";
import { type AskedSize, beginResizing, hasSize, requireResizable, requireSize } from "./size-request.ts";
import { machineSizeOf, sizeChangeOf, sizeForBoth } from "./service-size.ts";

export interface ResizeDeps extends MachineResizeDeps {
  readonly quotas: Pick<Quotas, "claim">;
  readonly catalog: CatalogData;
  readonly fleet: Pick<Fleet, "observation">;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Another size of a service, in the transaction of whoever asks for it. */
export interface Resized {
  readonly after: ManagedServiceObject;
  /** Undefined where that very size is being given already. */
  readonly operation: OperationObject | undefined;
}

/**
 * Asks for another size: the share of the quota, the room on the machines' hosts and the operation come with the transaction,
 * the service is for the caller to write. Throws WRONG_STATE, OPERATION_IN_PROGRESS, INVALID_REQUEST, NOT_POSSIBLE and
 * QUOTA_EXCEEDED.
 */
export async function resizeService(
  service: ManagedServiceObject,
  asked: AskedSize,
  inProgress: OperationObject | undefined,
  unit: UnitOfWork,
  deps: ResizeDeps,
  signal: AbortSignal,
): Promise<Resized> {
  const { catalog, clock } = deps;
  const isSame = sizeChangeOf(inProgress) !== undefined && hasSize(service, asked);
  if (isSame && inProgress?.status.rollback === undefined) return { after: service, operation: undefined };
  requireResizable(service, inProgress);
  refuseWhileBusy(service, inProgress);
  if (hasSize(service, asked)) throw new HoldfastError("NOT_POSSIBLE", sameSizeWords(service, asked));
  const observed = service.spec.nodes.map(({ id }) => deps.fleet.observation(id)?.instance);
  const to = requireSize(service, asked, { catalog, observed });
  const growthGb = to.storageSizeGb - service.spec.storageSizeGb;
  if (growthGb > 0)
    await deps.quotas.claim(unit, service.metadata.organizationId, { storageGb: growthGb * service.spec.nodes.length });
  const size = sizeForBoth(machineSizeOf(service.spec, catalog), machineSizeOf(to, catalog));
  for (const { id } of service.spec.nodes) await resizeMachine(id, size, unit, deps, signal);
  const asOf = { operationId: deps.newId(), now: clock.now() };
  const { after, operation } = beginResizing(service, to, catalog, asOf);
  unit.create(operationKind, operation);
  return { after, operation };
}

function sameSizeWords({ spec }: ManagedServiceObject, { planName }: AskedSize): string {
  if (planName !== undefined) return `The service has plan ${spec.planName} already. Name another one.`;
  return `The service has ${spec.storageSizeGb} GB already. Ask for more.`;
}
