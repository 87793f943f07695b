import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { CreateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { type Chosen, chooseFromCatalog } from "#catalog/catalog-choice.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { priceOfService } from "#catalog/price.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { canceled, findOperation, isFinished, operationKind, type OperationObject } from "#operation/operation.ts";
import { databaseUserId, databaseUserKind, type DatabaseUserObject } from "../contents/user/database-user.ts";
import { newUser } from "../contents/user/new-user.ts";
import { engineProfileOf } from "../engine/engine-profiles.ts";
import { type ResizeDeps, resizeService } from "../scaling/resize-service.ts";
import { canonicalCidrs } from "../service/network/allowed-cidrs.ts";
import { managedServiceKind, type ManagedServiceObject } from "../service/managed-service.ts";
import { newService } from "../service/new-service.ts";
import type { ServiceCreation } from "../service/service-creation.ts";
import { isReachable, requestDeletion } from "../service/service-deletion.ts";
import { databaseAliases, databaseSchema, type DatabaseSpec, normalizedDatabase } from "./database-spec.ts";
import {
  absent,
  type NewResource,
  type Parent,
  type Phase,
  type ResourceKind,
  type ResourceObservation,
  type ResourceSpec,
  specChanges,
} from "#resource-kind/resource-kind.ts";

export interface DatabaseKindDeps extends ResizeDeps {
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly users: Collection<DatabaseUserObject>;
  readonly creation: Pick<ServiceCreation, "add">;
  readonly catalog: CatalogData;
  readonly engines: () => readonly EngineOffer[];
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Name of the kind in descriptors. */
export const databaseKindName = "database";

/** The resource kind `database`: managed services as resources of projects, stacks and pipelines. */
export function createDatabaseKind(deps: DatabaseKindDeps): ResourceKind {
  const { services, operations, users, creation, catalog, engines, sealer, clock, newId } = deps;
  /** Catalog choices by spec object. Each request parses a new spec object, so a cached choice is never outdated. */
  const chosen = new WeakMap<DatabaseSpec, Chosen>();

  function choose(spec: DatabaseSpec): Chosen {
    const choice = chosen.get(spec) ?? chooseFromCatalog(choiceOf(spec), catalog, engines());
    chosen.set(spec, choice);
    return choice;
  }

  /** Finds a service; reads the store if memory lacks it, because memory may lag behind a recent write. */
  const find = async (id: string, signal: AbortSignal): Promise<Stored<ManagedServiceObject> | undefined> =>
    services.get(id) ?? services.getCurrent(id, signal);

  /** Version of the outputs: host, port and user name are permanent, only the password changes. */
  const passwordVersion = (id: string) => String(users.get(databaseUserId(id, defaultUser))?.modRevision ?? 0);

  async function inProgress({ status }: ManagedServiceObject, signal: AbortSignal) {
    const operation = await findOperation(operations, status.operationId, signal);
    return operation === undefined || isFinished(operation.object) ? undefined : operation;
  }

  function costLines(spec: ResourceSpec) {
    const { plan_name: planName, storage_size_gb: storageSizeGb } = spec as DatabaseSpec;
    const { storageTier } = choose(spec as DatabaseSpec);
    const { planCents, storageCents } = priceOfService(catalog, { planName, storageSizeGb, storageTier });
    return [
      { description: `plan ${planName}`, cents: planCents, isCeiling: false },
      { description: `${storageSizeGb} GB of ${storageTier} storage`, cents: storageCents, isCeiling: false },
    ];
  }

  return {
    kind: databaseKindName,
    aliases: databaseAliases,
    scopes: ["services:write"],
    schema: databaseSchema,
    normalize: normalizedDatabase,

    faults(spec) {
      const { faults } = choose(spec as DatabaseSpec);
      const cidrs = canonicalCidrs((spec as DatabaseSpec).allowed_cidrs ?? []).faults;
      // An engine or version that is missing here is reported by `unavailable`.
      const isMissing = ({ field, code }: FieldFault) => field === "database_type" || code === "unavailable";
      return [...faults.filter((fault) => !isMissing(fault)), ...cidrs];
    },

    unavailable(spec) {
      const { database_type: type, version } = spec as DatabaseSpec;
      const { engine, faults } = choose(spec as DatabaseSpec);
      if (engine === undefined) return `This installation has no ${type}.`;
      const missing = faults.find(({ code }) => code === "unavailable");
      return missing && `${type} ${version ?? engine.defaultVersion} ${missing.detail}.`;
    },

    monthlyCost: costLines,
    quotaOf: (spec) => ({ services: 1, storageGb: (spec as DatabaseSpec).storage_size_gb }),

    identity: ["database_type"],

    followed(spec, { storage_size_gb: sizeGb }) {
      const isGrown = typeof sizeGb === "number" && sizeGb > (spec as DatabaseSpec).storage_size_gb;
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
      const isPlanAlone = changes.every(({ path }) => path === "plan_name");
      return isPlanAlone ? { change: "inPlace", action: "scale_service", changes } : { change: "recorded", changes };
    },

    async create(unit, { id, name, organizationId, spec, owner }: NewResource, signal) {
      const request = create(CreateManagedServiceRequestSchema, {
        ...requestOf(spec as DatabaseSpec),
        name,
      });
      return creation.add(
        unit,
        { organizationId, serviceId: id },
        (context) => {
          const { service, operation } = newService(request, context);
          const { now } = context;
          const { databaseType: engine } = service.spec;
          const user = { serviceId: id, organizationId, username: defaultUser, role: "admin", engine } as const;
          return {
            service: { ...service, metadata: { ...service.metadata, managedBy: owner } },
            operation,
            users: [newUser({ ...user, sealer, now }).user],
          };
        },
        signal,
      );
    },

    async act(unit, id, _action, target, signal) {
      const service = await find(id, signal);
      if (service === undefined) throw new HoldfastError("SERVICE_NOT_FOUND", "The service was deleted.");
      const current = await inProgress(service.object, signal);
      const requested = { planName: (target as DatabaseSpec).plan_name };
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
      return service?.spec.deletionProtection === true ? `deletion_protection of ${service.metadata.name}` : undefined;
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
      return observationOf(service, (await inProgress(service, signal))?.object, passwordVersion(id));
    },

    version: (id) => `${services.get(id)?.modRevision ?? 0} ${passwordVersion(id)}`,
    subscribe(onChange) {
      const watches = [
        services.subscribe((id) => onChange(id)),
        users.subscribe((id, before) => {
          const user = users.get(id)?.object ?? before;
          if (user?.spec.username === defaultUser) onChange(user.spec.serviceId);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },

    async outputs(id, signal) {
      const service = (await find(id, signal))?.object;
      const userId = databaseUserId(id, defaultUser);
      const user = users.get(userId) ?? (await users.getCurrent(userId, signal));
      if (service === undefined || user === undefined) return undefined;
      const { databaseType: engine, hostname, port } = service.spec;
      return {
        type: "database",
        engine,
        host: privateNameOf(hostname),
        port,
        username: defaultUser,
        password: sealer.open(user.object.spec.sealedPassword, keyOf(databaseUserKind, userId)),
        database: engineProfileOf(engine).connectionDatabase,
      };
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
    ...(spec.allowed_cidrs && { allowedCidrs: { values: [...spec.allowed_cidrs] } }),
  };
}
