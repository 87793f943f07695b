import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { UpdateManagedServiceRequest } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { nextMetadata } from "../store/resource.ts";
import { windowOf } from "./window-message.ts";
import { canonicalCidrs } from "./allowed-cidrs.ts";
import type { ManagedServiceObject, ManagedServiceSpec } from "./managed-service.ts";
import { expiresAt } from "./new-service.ts";
import { reservedNameFault } from "./reserved-names.ts";

export interface ServiceUpdate {
  /** The very same object when the request changes nothing. */
  readonly after: ManagedServiceObject;
  readonly rename: { readonly from: string; readonly to: string } | undefined;
}

/** Pure: applies the fields named by the mask. Throws INVALID_REQUEST, or WRONG_STATE while the service is deleted. */
export function updateService(
  service: ManagedServiceObject,
  request: UpdateManagedServiceRequest,
  now: number,
): ServiceUpdate {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  if (service.metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service is being deleted.");
  let { name } = service.metadata;
  let change: Partial<ManagedServiceSpec> = {};
  for (const path of paths) {
    if (path === "name") name = newName(request);
    else change = { ...change, ...changeOf(path, request, now) };
  }
  const spec = { ...service.spec, ...change };
  const renamed = name !== service.metadata.name;
  if (!renamed && JSON.stringify(spec) === JSON.stringify(service.spec)) return { after: service, rename: undefined };
  const networksChanged = JSON.stringify(spec.allowedCidrs) !== JSON.stringify(service.spec.allowedCidrs);
  const lifeChanged =
    spec.expiresAt !== service.spec.expiresAt || spec.deletionProtection !== service.spec.deletionProtection;
  return {
    after: {
      ...service,
      metadata: { ...nextMetadata(service.metadata, now), name },
      spec: networksChanged ? { ...spec, instanceGeneration: spec.instanceGeneration + 1 } : spec,
      status: lifeChanged ? { ...service.status, expiryWarnings: [], announcedProtectedExpiry: false } : service.status,
    },
    rename: renamed ? { from: service.metadata.name, to: name } : undefined,
  };
}

/** Pure: every field that the protos let pass and that cannot be so. */
export function updateServiceFaults({ name, allowedCidrs }: UpdateManagedServiceRequest): readonly FieldFault[] {
  const reserved = name === undefined ? undefined : reservedNameFault(name);
  return [...(reserved === undefined ? [] : [reserved]), ...canonicalCidrs(allowedCidrs?.values ?? []).faults];
}

function newName({ name }: UpdateManagedServiceRequest): string {
  if (name === undefined) throw invalid({ field: "name", code: "not_clearable", detail: "must not be null" });
  return name;
}

function changeOf(path: string, request: UpdateManagedServiceRequest, now: number): Partial<ManagedServiceSpec> {
  switch (path) {
    case "allowed_cidrs":
      return { allowedCidrs: canonicalCidrs(request.allowedCidrs?.values ?? []).cidrs };
    case "ttl_hours": {
      const ttlHours = request.ttlHours ?? null;
      return { ttlHours, expiresAt: expiresAt(ttlHours, now) };
    }
    case "deletion_protection":
      return { deletionProtection: request.deletionProtection ?? false };
    case "maintenance_window":
      return { maintenanceWindow: windowOf(request.maintenanceWindow) };
    case "tags":
      return { tags: { ...request.tags } };
    default:
      throw invalid({ field: "update_mask", code: "unknown_field", detail: `${path} cannot be changed` });
  }
}
