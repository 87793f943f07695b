import { isDeepStrictEqual } from "node:util";
import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { CreateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { type Chosen, chooseFromCatalog } from "#catalog/catalog-choice.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { priceOfService } from "#catalog/price.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { Watch } from "#kernel/store/store.ts";
import { canceled, findOperation, isFinished, type OperationObject, operationKind } from "#operation/operation.ts";
import type { Outputs } from "#resource-kind/outputs.ts";
import {
  absent,
  type CredentialsFacet,
  type NewResource,
  type Parent,
  type Phase,
  type ResourceKind,
  type ResourceObservation,
  type ResourceSpec,
  specChanges,
} from "#resource-kind/resource-kind.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import { type ResizeDeps, resizeService } from "../scaling/resize-service.ts";
import { type ManagedServiceObject, managedServiceKind } from "../service/managed-service.ts";
import { layoutModeFault } from "../service/layout-mode.ts";
import { serverCollationFault } from "../service/server-collation.ts";
import { canonicalCidrs } from "../service/network/allowed-cidrs.ts";
import { newService } from "../service/new-service.ts";
import { attachmentText, type ServiceConsumers } from "../service/service-consumers.ts";
import type { ServiceCreation } from "../service/service-creation.ts";
import { isReachable, requestDeletion } from "../service/service-deletion.ts";
import type { DatabaseSpec } from "./database-spec.ts";

export interface ServiceKindDeps extends ResizeDeps {
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly creation: Pick<ServiceCreation, "add">;
  readonly catalog: CatalogData;
  /** Engines of all families. */
  readonly engines: () => readonly EngineOffer[];
  readonly consumers: readonly ServiceConsumers[];
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The differences between the kinds of services. */
export interface ServiceVariant
  extends Pick<ResourceKind, "kind" | "aliases" | "scopes" | "schema" | "normalize" | "identity"> {
  /** The normalized spec as that of a database, with the engine. */
  readonly databaseSpecOf: (spec: ResourceSpec) => DatabaseSpec;
  /** True if a running service gets another plan; otherwise every change is only recorded. */
  readonly changesPlan: boolean;
  /** Users that exist from the start. */
  readonly firstUsersOf: (service: ManagedServiceObject, now: number) => readonly DatabaseUserObject[];
  /** A string that changes with the outputs of a service. */
  readonly outputsVersionOf: (id: string) => string;
  /** Calls back with ids of services whose outputs may have changed; absent for constant outputs. */
  readonly watchOutputs?: (onChange: (id: string) => void) => Watch;
  readonly outputsOf: (service: ManagedServiceObject, signal: AbortSignal) => Promise<Outputs | undefined>;
  readonly credentials?: CredentialsFacet;
}

/** A kind of resource whose resources are services. */
export function createServiceKind(deps: ServiceKindDeps, variant: ServiceVariant): ResourceKind {
  const { services, operations, creation, catalog, engines, clock, newId } = deps;
  const { databaseSpecOf, outputsVersionOf } = variant;
  /** Catalog choices by spec object. Each request parses a new spec object, so a cached choice is never outdated. */
  const chosen = new WeakMap<ResourceSpec, Chosen>();

  function choose(spec: ResourceSpec): Chosen {
    const choice = chosen.get(spec) ?? chooseFromCatalog(choiceOf(databaseSpecOf(spec)), catalog, engines());
    chosen.set(spec, choice);
    return choice;
  }

  /** Finds a service; reads the store if memory lacks it, because memory may lag behind a recent write. */
  const find = async (id: string, signal: AbortSignal): Promise<Stored<ManagedServiceObject> | undefined> =>
    services.get(id) ?? services.getCurrent(id, signal);

  async function inProgress({ status }: ManagedServiceObject, signal: AbortSignal) {
    const operation = await findOperation(operations, status.operationId, signal);
    return operation === undefined || isFinished(operation.object) ? undefined : operation;
  }

  function costLines(spec: ResourceSpec) {
    const { plan_name: planName, storage_size_gb: storageSizeGb } = databaseSpecOf(spec);
    const { storageTier } = choose(spec);
    const { planCents, storageCents } = priceOfService(catalog, { planName, storageSizeGb, storageTier });
    return [
      { description: `plan ${planName}`, cents: planCents, isCeiling: false },
      { description: `${storageSizeGb} GB of ${storageTier} storage`, cents: storageCents, isCeiling: false },
    ];
  }

  return {
    kind: variant.kind,
    aliases: variant.aliases,
    scopes: variant.scopes,
    schema: variant.schema,
    normalize: variant.normalize,
    ...(variant.credentials && { credentials: variant.credentials }),

    faults(spec) {
      const { faults } = choose(spec);
      const cidrs = canonicalCidrs(databaseSpecOf(spec).allowed_cidrs ?? []).faults;
      // An engine or version that is missing here is reported by `unavailable`.
      const isMissing = ({ field, code }: FieldFault) => field === "database_type" || code === "unavailable";
      const { database_type: type, layout_mode: layout, server_collation: collation } = databaseSpecOf(spec);
      const fixed = [layoutModeFault(type, layout), serverCollationFault(type, collation)];
      const found = faults.filter((fault) => !isMissing(fault));
      return [...found, ...cidrs, ...fixed.filter((fault) => fault !== undefined)];
    },

    unavailable(spec) {
      const { database_type: type, version } = databaseSpecOf(spec);
      const { engine, faults } = choose(spec);
      if (engine === undefined) return `This installation has no ${type}.`;
      const missing = faults.find(({ code }) => code === "unavailable");
      return missing && `${type} ${version ?? engine.defaultVersion} ${missing.detail}.`;
    },

    monthlyCost: costLines,
    quotaOf: (spec) => ({ services: 1, storageGb: databaseSpecOf(spec).storage_size_gb }),

    ...(variant.identity && { identity: variant.identity }),

    followed(spec, { storage_size_gb: sizeGb }) {
      const isGrown = typeof sizeGb === "number" && sizeGb > databaseSpecOf(spec).storage_size_gb;
      return isGrown ? { ...spec, storage_size_gb: sizeGb } : undefined;
    },

    nameHolder(organizationId, name) {
      const found = ofOrganization(services, organizationId).find(({ metadata }) => metadata.name === name);
      if (found === undefined) return undefined;
      const { id, managedBy } = found.metadata;
      return { id, text: `service ${id}${managedBy === undefined ? "" : ` of ${managedBy.kind} ${managedBy.id}`}` };
    },

    diff(before, after) {
      const changes = specChanges(before, after);
      if (changes.length === 0) return { change: "unchanged" };
      const isPlanAlone = variant.changesPlan && changes.every(({ path }) => path === "plan_name");
      return isPlanAlone ? { change: "inPlace", action: "scale_service", changes } : { change: "recorded", changes };
    },

    async create(unit, { id, name, organizationId, spec, owner }: NewResource, signal) {
      const request = create(CreateManagedServiceRequestSchema, {
        ...requestOf(databaseSpecOf(spec)),
        name,
      });
      return creation.add(
        unit,
        { organizationId, serviceId: id },
        (context) => {
          const { service, operation } = newService(request, context);
          return {
            service: { ...service, metadata: { ...service.metadata, managedBy: owner } },
            operation,
            users: variant.firstUsersOf(service, context.now),
          };
        },
        signal,
      );
    },

    async act(unit, id, _action, target, signal) {
      const service = await find(id, signal);
      if (service === undefined) throw new HoldfastError("SERVICE_NOT_FOUND", "The service was deleted.");
      const current = await inProgress(service.object, signal);
      const requested = { planName: databaseSpecOf(target).plan_name };
      // The action was already performed, before a crash.
      if (service.object.spec.planName === requested.planName) return;
      const { after, operation } = await resizeService(service.object, requested, current?.object, unit, deps, signal);
      if (operation !== undefined) unit.update(managedServiceKind, service, after);
    },

    async mark(unit, id, owner, signal) {
      const service = await find(id, signal);
      if (service === undefined) return;
      unit.update(managedServiceKind, service, { ...service.object, metadata: withOwner(service.object, owner) });
    },

    protectedBy(id) {
      const service = services.get(id)?.object;
      if (service === undefined) return undefined;
      const { name, organizationId, managedBy } = service.metadata;
      if (service.spec.deletionProtection)
        return { error: "DELETION_PROTECTED", detail: `set deletion_protection of ${name} to false first.` };
      // The bundle removes its own consumers first.
      const others = deps.consumers
        .flatMap((kind) => kind.of(organizationId, id))
        .filter((consumer) => managedBy === undefined || !isDeepStrictEqual(consumer.managedBy, managedBy));
      const detail = attachmentText(others);
      return detail === undefined ? undefined : { error: "ATTACHMENT_IN_USE", detail };
    },

    async remove(unit, id, { isOrderly }, signal) {
      const service = await find(id, signal);
      if (service === undefined || service.object.metadata.deletionRequestedAt !== undefined) return false;
      const current = await inProgress(service.object, signal);
      const now = clock.now();
      const requested = {
        operationId: newId(),
        now,
        skipFinalBackup: !isOrderly,
        isReachable: isReachable(service.object, deps.fleet),
      };
      const { after, operation } = requestDeletion(service.object, requested);
      if (current !== undefined) unit.update(operationKind, current, canceled(current.object, now));
      unit.create(operationKind, operation);
      unit.update(managedServiceKind, service, after);
      return true;
    },

    async observe(id, signal, { isCurrent } = { isCurrent: false }) {
      const service = (await (isCurrent ? services.getCurrent(id, signal) : find(id, signal)))?.object;
      if (service === undefined) return absent;
      return observationOf(service, (await inProgress(service, signal))?.object, outputsVersionOf(id));
    },

    version: (id) => `${services.get(id)?.modRevision ?? 0} ${outputsVersionOf(id)}`,
    subscribe(onChange) {
      const outputs = variant.watchOutputs?.(onChange);
      const changes = services.subscribe((id) => onChange(id));
      return {
        close() {
          changes.close();
          outputs?.close();
        },
      };
    },

    async outputs(id, signal) {
      const service = (await find(id, signal))?.object;
      return service && variant.outputsOf(service, signal);
    },
  };
}

/** The observation of a service. `operation`: the operation in progress, if any. */
function observationOf(
  service: ManagedServiceObject,
  operation: OperationObject | undefined,
  outputsVersion: string,
): ResourceObservation {
  const { metadata, spec, status } = service;
  const phase = phaseOf(service, operation);
  const { health, error } = status;
  const healthy = phase === "running" && health.status === "healthy";
  const detail = error?.message ?? (healthy ? null : health.reason || `${metadata.name} is ${status.state}.`);
  return {
    phase,
    healthy,
    detail: healthy ? null : detail,
    progressPct: operation?.status.progressPct ?? (phase === "running" ? 100 : 0),
    actual: actualOf(spec),
    outputsVersion,
  };
}

function phaseOf({ metadata, status }: ManagedServiceObject, operation: OperationObject | undefined): Phase {
  if (metadata.deletionRequestedAt !== undefined) return "deleting";
  if (status.state === "Error") return "failed";
  if (status.state === "Pending" || status.state === "Provisioning") return "creating";
  // An operation ends in the transaction that changes the service's state.
  return operation === undefined && status.state === "Running" ? "running" : "changing";
}

function actualOf(spec: ManagedServiceObject["spec"]): ResourceSpec {
  return {
    database_type: spec.databaseType,
    version: spec.version,
    plan_name: spec.planName,
    storage_size_gb: spec.storageSizeGb,
    storage_tier: spec.storageTier,
    zone: spec.zone,
    ...(spec.layoutMode === "multi-db" && { layout_mode: spec.layoutMode }),
    ...(spec.serverCollation !== undefined && { server_collation: spec.serverCollation }),
    parameters: spec.parameters,
    allowed_cidrs: spec.allowedCidrs,
    deletion_protection: spec.deletionProtection,
    tags: spec.tags,
  };
}

function withOwner({ metadata }: ManagedServiceObject, owner: Parent | undefined): ManagedServiceObject["metadata"] {
  const { managedBy: _, ...rest } = metadata;
  return owner === undefined ? rest : { ...rest, managedBy: owner };
}

function choiceOf(spec: DatabaseSpec) {
  return {
    databaseType: spec.database_type,
    version: spec.version,
    planName: spec.plan_name,
    storageSizeGb: spec.storage_size_gb,
    storageTier: spec.storage_tier,
    zone: spec.zone,
    parameters: spec.parameters ?? {},
  };
}

function requestOf(spec: DatabaseSpec) {
  const { version, storageTier, zone, ...chosen } = choiceOf(spec);
  return {
    ...chosen,
    deletionProtection: spec.deletion_protection ?? false,
    tags: { ...spec.tags },
    ...(version !== undefined && { version }),
    ...(storageTier !== undefined && { storageTier }),
    ...(zone !== undefined && { zone }),
    ...(spec.layout_mode && { layoutMode: spec.layout_mode }),
    ...(spec.server_collation !== undefined && { serverCollation: spec.server_collation }),
    ...(spec.allowed_cidrs && { allowedCidrs: { values: [...spec.allowed_cidrs] } }),
  };
}
