import { create } from "@bufbuild/protobuf";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import {
  type CreateManagedServiceRequest,
  CreateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { planSizeOf } from "#catalog/catalog.ts";
import { runnableParameters } from "#catalog/parameter-choice.ts";
import type { ServiceOrigin } from "../service/service-origin.ts";
import { newService, newServiceFaults, type NewServiceContext } from "../service/new-service.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { BackupSource } from "./archive.ts";

/** What a restore may choose; all else is as the source has it. */
export interface CopyChoice {
  readonly name: string;
  readonly planName?: string | undefined;
  readonly zone?: string | undefined;
  readonly storageSizeGb?: number | undefined;
}

/**
 * Pure: the service that is made out of a backup of the source, and its first operation. It inherits engine, version, plan,
 * storage, zone, allow-list and those parameters that the new plan holds; not time to live, protection, window or tags. Throws INVALID_REQUEST for what the
 * request chose, and NOT_POSSIBLE for what the source has and this installation can give no more. `nameField` is the request's.
 */
export function copyOf(
  source: BackupSource,
  choice: CopyChoice,
  origin: Omit<ServiceOrigin, "restoreId" | "finishedAt">,
  context: NewServiceContext,
  nameField: string,
): { service: ManagedServiceObject; operation: OperationObject } {
  const request = requestOf(source, choice, context);
  const faults = newServiceFaults(request, context).map((fault) => asAsked(fault, nameField));
  const size = choice.storageSizeGb ?? source.storageSizeGb;
  if (size < source.storageSizeGb)
    faults.push(faultOf("storage_size_gb", "too_small", `must be at least ${source.storageSizeGb}, as the source has`));
  const chosen = new Map([
    [nameField, true],
    ["plan_name", choice.planName !== undefined],
    ["zone", choice.zone !== undefined],
    ["storage_size_gb", choice.storageSizeGb !== undefined],
  ]);
  const errors = faults.filter(({ field }) => chosen.get(field) === true);
  if (errors.length > 0)
    throw new HoldfastError("INVALID_REQUEST", errors.map((e) => `${e.field}: ${e.detail}`).join("; "), { errors });
  const [inherited] = faults;
  if (inherited !== undefined)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `What the source has cannot be made: ${inherited.field} ${inherited.detail}.`,
    );
  const { service, operation } = newService(request, context);
  const spec = { ...service.spec, origin: { ...origin, restoreId: context.operationId, finishedAt: null } };
  return { service: { ...service, spec }, operation };
}

/** Parameters that this version and plan hold no more are left at their defaults: the data come back all the same. */
function requestOf(
  source: BackupSource,
  choice: CopyChoice,
  { catalog, engines }: Pick<NewServiceContext, "catalog" | "engines">,
): CreateManagedServiceRequest {
  const { planName = source.planName, storageSizeGb = source.storageSizeGb } = choice;
  const engine = engines.find(({ databaseType }) => databaseType === source.databaseType);
  const plan = planSizeOf(catalog, planName, storageSizeGb);
  const parameters =
    engine === undefined || plan === undefined
      ? source.parameters
      : runnableParameters(engine, source.version, plan, source.parameters);
  return create(CreateManagedServiceRequestSchema, {
    name: choice.name,
    databaseType: source.databaseType,
    version: source.version,
    planName,
    storageSizeGb,
    storageTier: source.storageTier,
    zone: choice.zone ?? source.zone,
    allowedCidrs: { values: [...source.allowedCidrs] },
    parameters: { ...parameters },
  });
}

function asAsked(fault: FieldFault, nameField: string): FieldFault {
  return fault.field === "name" ? faultOf(nameField, fault.code, fault.detail) : fault;
}

function faultOf(field: string, code: string, detail: string): FieldFault {
  return { field, pointer: `/${field}`, code, detail };
}
