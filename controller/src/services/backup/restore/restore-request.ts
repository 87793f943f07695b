import { create } from "@bufbuild/protobuf";
import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type CreateManagedServiceRequest,
  CreateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { planSizeOf } from "#catalog/catalog.ts";
import { runnableParameters } from "#catalog/parameter-choice.ts";
import { supportedByNodes } from "../../configuration/node-bounds.ts";
import type { ServiceOrigin } from "../../service/service-origin.ts";
import { newService, newServiceFaults, type NewServiceContext } from "../../service/new-service.ts";
import { withFirstMember } from "../../service/member/peers/first-peer.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { BackupSource } from "../archive/archive.ts";

/** Requested settings of a restored service. All others are the source's. */
export interface RestoreChoice {
  readonly name: string;
  readonly planName?: string | undefined;
  readonly zone?: string | undefined;
  readonly storageSizeGb?: number | undefined;
  readonly nodeCount?: number | undefined;
}

/**
 * The name of the new service, and the request field that has it. Throws INVALID_REQUEST unless exactly one of the two
 * fields is present.
 */
export function newNameOf(request: {
  readonly name?: string | undefined;
  readonly targetServiceName?: string | undefined;
}): { readonly name: string; readonly nameField: string } {
  const { name, targetServiceName } = request;
  if (name !== undefined && targetServiceName !== undefined)
    throw invalid({
      field: "target_service_name",
      code: "exclusive",
      detail: "must be without name, which is the same",
    });
  if (name !== undefined) return { name, nameField: "name" };
  if (targetServiceName === undefined) throw invalid({ field: "name", code: "required", detail: "is required" });
  return { name: targetServiceName, nameField: "target_service_name" };
}

/**
 * A new service from a backup of the source, and its first operation. It inherits engine, version, plan, storage,
 * zone, allow-list and the parameters that fit the new plan, but not time to live, protection, window and tags.
 * `nameField` is the request field with the name. Throws INVALID_REQUEST for the request's choices, and NOT_POSSIBLE
 * for settings of the source that this installation does not offer.
 */
export function restoredService(
  source: BackupSource,
  choice: RestoreChoice,
  origin: Omit<ServiceOrigin, "restoreId" | "finishedAt">,
  context: NewServiceContext,
  nameField: string,
): { service: ManagedServiceObject; operation: OperationObject } {
  const request = requestOf(source, choice, context);
  const faults = newServiceFaults(request, context).map((fault) => withNameField(fault, nameField));
  const size = choice.storageSizeGb ?? source.storageSizeGb;
  if (size < source.storageSizeGb)
    faults.push(
      faultOf("storage_size_gb", "too_small", `must be at least ${source.storageSizeGb}, the size of the source`),
    );
  const chosen = new Map([
    [nameField, true],
    ["plan_name", choice.planName !== undefined],
    ["zone", choice.zone !== undefined],
    ["storage_size_gb", choice.storageSizeGb !== undefined],
    ["node_count", choice.nodeCount !== undefined],
  ]);
  const errors = faults.filter(({ field }) => chosen.get(field) === true);
  if (errors.length > 0)
    throw new HoldfastError("INVALID_REQUEST", errors.map((e) => `${e.field}: ${e.detail}`).join("; "), { errors });
  const [inherited] = faults;
  if (inherited !== undefined)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `This installation cannot create a service with the source's settings: ${inherited.field} ${inherited.detail}.`,
    );
  const { service, operation } = newService(request, context);
  const nodes = withFirstMember(service.spec.nodes);
  const spec = { ...service.spec, nodes, origin: { ...origin, restoreId: context.operationId, finishedAt: null } };
  return { service: { ...service, spec }, operation };
}

/**
 * The request. Parameters that the version, plan or number of nodes does not allow get their defaults, so that the
 * restore succeeds.
 */
function requestOf(
  source: BackupSource,
  choice: RestoreChoice,
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
    parameters: { ...supportedByNodes(source.databaseType, parameters, choice.nodeCount ?? 1) },
    ...(choice.nodeCount !== undefined && { nodeCount: choice.nodeCount }),
    ...(source.layoutMode !== undefined && { layoutMode: source.layoutMode }),
    ...(source.serverCollation !== undefined && { serverCollation: source.serverCollation }),
  });
}

function withNameField(fault: FieldFault, nameField: string): FieldFault {
  return fault.field === "name" ? faultOf(nameField, fault.code, fault.detail) : fault;
}

function faultOf(field: string, code: string, detail: string): FieldFault {
  return { field, pointer: `/${field}`, code, detail };
}
