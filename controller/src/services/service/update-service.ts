import { type FieldFault, HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { UpdateManagedServiceRequest } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { windowOf } from "../maintenance/maintenance-window.ts";
import { canonicalCidrs } from "./network/allowed-cidrs.ts";
import { replicationModeChange, replicationModeOf } from "./member/primary-replicas/replication/sync-standbys.ts";
import type { ManagedServiceObject, ManagedServiceSpec, ReplicationMode } from "./managed-service.ts";
import { expiresAt } from "./new-service.ts";
import { autoscaleFault, autoscaleOf, chosenAutoscale } from "../scaling/storage-autoscale.ts";
import { chosenPooler, poolerOf, requirePoolerEngine } from "./pooler.ts";
import { privateListenerFault, privateListenerOf } from "./private-listener.ts";
import { reservedNameFault } from "./network/service-names.ts";

/** Result of an update. */
export interface ServiceUpdate {
  /** The changed service; the stored object itself if the request changes nothing. */
  readonly after: ManagedServiceObject;
  readonly rename: { readonly from: string; readonly to: string } | undefined;
}

/** Applies the fields of the update mask. Throws INVALID_REQUEST, or WRONG_STATE while the service is being deleted. */
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
    else if (path === "replication_mode") change = { ...change, ...replicationModeChange(service, newMode(request)) };
    else change = { ...change, ...changeOf(path, request, service.spec, now) };
  }
  const spec = { ...service.spec, ...change };
  const renamed = name !== service.metadata.name;
  if (!renamed && JSON.stringify(spec) === JSON.stringify(service.spec)) return { after: service, rename: undefined };
  const agentSettings = (of: ManagedServiceSpec) =>
    JSON.stringify([of.allowedCidrs, poolerOf(of), privateListenerOf(of), replicationModeOf(of)]);
  const lifeChanged =
    spec.expiresAt !== service.spec.expiresAt || spec.deletionProtection !== service.spec.deletionProtection;
  return {
    after: {
      ...service,
      metadata: { ...nextMetadata(service.metadata, now), name },
      spec:
        agentSettings(spec) !== agentSettings(service.spec)
          ? { ...spec, instanceGeneration: spec.instanceGeneration + 1 }
          : spec,
      status: lifeChanged ? { ...service.status, expiryWarnings: [], announcedProtectedExpiry: false } : service.status,
    },
    rename: renamed ? { from: service.metadata.name, to: name } : undefined,
  };
}

/** Errors of fields that are not in the protos' own validation. */
export function updateServiceFaults({ name, allowedCidrs }: UpdateManagedServiceRequest): readonly FieldFault[] {
  const reserved = name === undefined ? undefined : reservedNameFault(name);
  return [...(reserved === undefined ? [] : [reserved]), ...canonicalCidrs(allowedCidrs?.values ?? []).faults];
}

function newMode({ replicationMode }: UpdateManagedServiceRequest): ReplicationMode {
  if (replicationMode === undefined)
    throw invalid({ field: "replication_mode", code: "not_clearable", detail: "must not be null" });
  return replicationMode as ReplicationMode;
}

function newName({ name }: UpdateManagedServiceRequest): string {
  if (name === undefined) throw invalid({ field: "name", code: "not_clearable", detail: "must not be null" });
  return name;
}

function changeOf(
  path: string,
  request: UpdateManagedServiceRequest,
  before: ManagedServiceSpec,
  now: number,
): Partial<ManagedServiceSpec> {
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
    case "pooler": {
      requirePoolerEngine(before.databaseType, request.pooler);
      const pooler = chosenPooler(before, request.pooler);
      return pooler === undefined ? {} : { pooler };
    }
    case "private_listener": {
      const fault = privateListenerFault(before.databaseType, request.privateListener);
      if (fault !== undefined) throw invalid({ field: fault.field, code: fault.code, detail: fault.detail });
      return { privateListener: request.privateListener ?? false };
    }
    case "storage_autoscale": {
      const storageAutoscale = chosenAutoscale(before, request.storageAutoscale);
      if (storageAutoscale === undefined) return {};
      const fault = autoscaleFault(autoscaleOf({ storageAutoscale }), before.storageSizeGb);
      if (fault !== undefined) throw invalid(fault);
      return { storageAutoscale };
    }
    case "tags":
      return { tags: { ...request.tags } };
    // The caller applies sizes by an operation (resize-service.ts).
    case "plan_name":
    case "storage_size_gb":
      return {};
    default:
      throw invalid({ field: "update_mask", code: "unknown_field", detail: `${path} cannot be changed` });
  }
}
