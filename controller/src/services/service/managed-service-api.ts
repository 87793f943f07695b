import { refuseIfManaged } from "#access/managed-by-parent.ts";
import { type Call, type Handlers, serve, type ServedService } from "@holdfast/common/call.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { engineNamed, familyOf, type ServiceFamily } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import {
  type CreateManagedServiceRequest,
  type ListManagedServicesRequest,
  type ManagedService,
  ManagedServiceService,
  type UpdateManagedServiceRequest,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { OwnerLogs } from "#fleet/owner/owner-logs.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { newUser } from "../contents/user/database-user.ts";
import { engineProfileOf } from "../engine/engine-profiles.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { connectionOf } from "./network/connection.ts";
import { createLiveServices } from "./live-services.ts";
import { managedServiceKind, type ManagedServiceObject } from "./managed-service.ts";
import {
  type BackupsSummary,
  deletedServiceMessage,
  managedServiceMessage,
  nodeMessage,
  type PendingSummary,
  serviceStatuses,
  taskSummaryOf,
} from "./managed-service-message.ts";
import { newService, newServiceFaults } from "./new-service.ts";
import type { DeletedServices } from "./deleted-services.ts";
import type { ServiceAccess } from "./service-access.ts";
import type { ServiceCreation } from "./service-creation.ts";
import { requirePooler } from "./pooler.ts";
import { consumersOf, type ServiceConsumers } from "./service-consumers.ts";
import { isReachable } from "./service-deletion.ts";
import { requestCommand, type ServiceCommand } from "./service-commands.ts";
import { updateService, updateServiceFaults } from "./update-service.ts";
import { type ResizeDeps, resizeService } from "../scaling/resize-service.ts";
import { withWritesAllowed } from "../scaling/storage-warning.ts";
import { type RequestedSize, hasSize } from "../scaling/size-request.ts";

export interface ManagedServiceApiDeps extends ResizeDeps {
  /** Family of the services, which `access` finds and `engines` can create. */
  readonly family: ServiceFamily;
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  /** Builds the message of a service for responses. */
  readonly serviceMessage: (object: ManagedServiceObject, operation: OperationObject | undefined) => ManagedService;
  readonly creation: ServiceCreation;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
  readonly sealer: Sealer;
  readonly logs: OwnerLogs;
  /** Finds the owner of a log: a service, or another owner of machines. */
  readonly monitoredOwners: Pick<MonitoredOwners, "require">;
  readonly engines: () => readonly EngineOffer[];
  readonly trustBundle: () => string;
  /** Pending updates of the service. */
  readonly pendingOf: (service: ManagedServiceObject) => readonly PendingSummary[];
  /** Summary of restorable backups, identical while unchanged; undefined for an engine without backups. */
  readonly backupsOf: (service: ManagedServiceObject) => BackupsSummary | undefined;
  readonly deleted: DeletedServices;
  readonly fleet: Pick<Fleet, "observation" | "session">;
  readonly consumers: readonly ServiceConsumers[];
}

/** The RPCs of managed databases. */
export function createManagedServiceApi(deps: ManagedServiceApiDeps): ServedService {
  const { handlers, faults } = createServiceHandlers(deps);
  return serve(ManagedServiceService, handlers, faults);
}

/** Handlers of the RPCs of one family of services, and their checks of requests. */
export function createServiceHandlers(deps: ManagedServiceApiDeps) {
  const { access, services, cursors, family } = deps;
  /** Message of an object without an operation in progress, cached for as long as the object is current. */
  const messages = new WeakMap<
    ManagedServiceObject,
    { message: ManagedService; backups: BackupsSummary | undefined }
  >();
  const { withCurrentHealth: live } = createLiveServices(deps.fleet, deps.clock.now);

  const { serviceMessage } = deps;

  async function message({ object: stored }: Stored<ManagedServiceObject>, call: Call): Promise<ManagedService> {
    const object = live(stored);
    const pending = deps.pendingOf(stored);
    const backups = deps.backupsOf(stored);
    const cached = messages.get(object);
    if (cached !== undefined && pending.length === 0 && cached.backups === backups) return cached.message;
    const operation = await access.inProgress(object, call.signal);
    const created = Object.freeze(managedServiceMessage(object, operation?.object, pending, backups));
    // A message with pending updates is not cached, because its times depend on the clock.
    if (object.status.operationId === null && pending.length === 0) messages.set(object, { message: created, backups });
    return created;
  }

  const see = [services, deps.operations];
  const kind = "managed-service";

  const command =
    (name: ServiceCommand) => (input: { id: string; skipFinalBackup?: boolean | undefined }, call: Call) =>
      mutate(deps, call, { action: `managed-service.${name}`, kind, visibleIn: see }, async (unit) => {
        const service = access.require(input.id, call);
        refuseIfManaged(service.object, name);
        checkIfMatch(call, service.object);
        const current = await access.inProgress(service.object, call.signal);
        const { skipFinalBackup = false } = input;
        const request = {
          operationId: deps.newId(),
          skipFinalBackup,
          isReachable: isReachable(service.object, deps.fleet),
          now: deps.clock.now(),
          ...(name === "delete" && {
            consumers: await consumersOf(deps.consumers, service.object.metadata, service.modRevision),
          }),
        };
        const outcome = requestCommand(service.object, name, current?.object, request);
        if (outcome.kind === "inProgress") return { unchanged: await message(service, call) };
        if (current !== undefined && outcome.ended !== undefined) unit.update(operationKind, current, outcome.ended);
        unit.create(operationKind, outcome.operation);
        unit.update(managedServiceKind, service, outcome.after);
        const response = serviceMessage(outcome.after, outcome.operation);
        return { id: input.id, etag: etag(outcome.after), response };
      });

  const resize = (name: "resize" | "expand", id: string, size: RequestedSize, call: Call) =>
    mutate(deps, call, { action: `managed-service.${name}`, kind, visibleIn: see }, async (unit) => {
      const service = access.require(id, call);
      refuseIfManaged(service.object, name);
      checkIfMatch(call, service.object);
      const current = await access.inProgress(service.object, call.signal);
      const { after, operation } = await resizeService(service.object, size, current?.object, unit, deps, call.signal);
      if (operation === undefined) return { unchanged: await message(service, call) };
      unit.update(managedServiceKind, service, after);
      return { id, etag: etag(after), response: serviceMessage(after, operation) };
    });

  const handlers: Handlers<typeof ManagedServiceService> = {
    createManagedService: async (requested, call) => {
      const request = withEngine(requested);
      const { service, message: created } = await deps.creation.create(call, "managed-service.create", (context) => {
        const designed = newService(request, context);
        const { service } = designed;
        const { serviceId, organizationId, now } = context;
        const user = { serviceId, organizationId, username: defaultUser, role: "admin" } as const;
        const { databaseType: engine } = service.spec;
        if (engineProfileOf(engine).hasDefaultUser === false) return { ...designed, users: [] };
        return { ...designed, users: [newUser({ ...user, engine, sealer: deps.sealer, now }).user] };
      });
      call.setHeader("ETag", etag(service));
      return created;
    },

    listManagedServices: async (request, call) => {
      const { accepts, label } = listFilter(request, family);
      if (request.deleted === true) {
        const page = {
          ...cursors.open(call, "deleted-services", label, request),
          organizationId: organizationOf(call),
        };
        const { items, next } = deps.deleted.page(
          (service) => mayTouch(call, "managed-service", service.metadata.id) && accepts(service),
          page,
        );
        return { services: items.map(deletedServiceMessage), ...page.next(next) };
      }
      const page = { ...cursors.open(call, "managed-services", label, request), organizationId: organizationOf(call) };
      const isVisible = (service: ManagedServiceObject) =>
        mayTouch(call, "managed-service", service.metadata.id) && accepts(service);
      const { items, next } = services.page(isVisible, page);
      return { services: await Promise.all(items.map((item) => message(item, call))), ...page.next(next) };
    },

    getManagedService: async ({ id }, call) => {
      const service = access.require(id, call);
      call.setHeader("ETag", etag(service.object));
      return message(service, call);
    },

    updateManagedService: (request: UpdateManagedServiceRequest, call) =>
      mutate(deps, call, { action: "managed-service.update", kind, visibleIn: see }, async (unit) => {
        const service = access.require(request.id, call);
        checkIfMatch(call, service.object);
        const { after, rename } = updateService(service.object, request, deps.clock.now());
        requirePooler(service.object.spec, after.spec, (nodeId) => deps.fleet.observation(nodeId)?.instance);
        if (rename !== undefined) refuseIfManaged(service.object, "rename");
        const size = requestedSize(request);
        if (size.planName !== undefined && !hasSize(after, { planName: size.planName }))
          refuseIfManaged(service.object, "resize");
        const current = await access.inProgress(service.object, call.signal);
        const resized = hasSize(after, size)
          ? { after, operation: undefined }
          : await resizeService(after, size, current?.object, unit, deps, call.signal);
        if (resized.after === service.object) return { unchanged: await message(service, call) };
        if (rename !== undefined) {
          unit.releaseName(managedServiceKind, service.object.metadata.organizationId, rename.from);
          unit.claimName(managedServiceKind, service.object.metadata.organizationId, rename.to, request.id);
        }
        unit.update(managedServiceKind, service, resized.after);
        const operation = resized.operation ?? current?.object;
        return { id: request.id, etag: etag(resized.after), result: serviceMessage(resized.after, operation) };
      }),

    resizeManagedService: ({ id, planName }, call) => resize("resize", id, { planName }, call),
    enableWrites: ({ id }, call) =>
      mutate(deps, call, { action: "managed-service.enable-writes", kind, visibleIn: see }, async (unit) => {
        const service = access.requireRunning(id, call);
        checkIfMatch(call, service.object);
        const after = withWritesAllowed(service.object, deps.fleet, deps.clock.now());
        unit.update(managedServiceKind, service, after);
        const operation = (await access.inProgress(after, call.signal))?.object;
        return { id, etag: etag(after), response: serviceMessage(after, operation) };
      }),
    expandStorage: ({ id, storageSizeGb }, call) => resize("expand", id, { storageSizeGb }, call),

    startManagedService: command("start"),
    stopManagedService: command("stop"),
    restartManagedService: command("restart"),
    deleteManagedService: command("delete"),

    getConnection: async ({ id }, call) => connectionOf(access.require(id, call).object, deps.trustBundle()),

    listNodes: async ({ id, ...pageRequest }, call) => {
      const { object } = access.require(id, call);
      // All nodes fit one page, so no cursor is ever returned.
      cursors.open(call, "nodes", id, pageRequest);
      return { nodes: object.spec.nodes.map((node) => nodeMessage(object, node)) };
    },

    listLogs: (request, call) => deps.logs.page(deps.monitoredOwners.require(request.id, call), request, call),

    getTaskSummary: async ({ id }, call) => {
      const { object } = access.require(id, call);
      return taskSummaryOf(object, (await access.inProgress(object, call.signal))?.object);
    },
  };
  const faults = {
    createManagedService: (request: CreateManagedServiceRequest) =>
      newServiceFaults(withEngine(request), { catalog: deps.catalog, engines: deps.engines() }),
    updateManagedService: updateServiceFaults,
  };
  return { handlers, faults };
}

/** The sizes that the update mask names. */
function requestedSize({ planName, storageSizeGb, updateMask }: UpdateManagedServiceRequest): RequestedSize {
  const paths = updateMask?.paths ?? [];
  return {
    ...(paths.includes("plan_name") && planName !== undefined && { planName }),
    ...(paths.includes("storage_size_gb") && storageSizeGb !== undefined && { storageSizeGb }),
  };
}

function etag(service: ManagedServiceObject): string {
  return `"${service.metadata.generation}"`;
}

/** Throws PRECONDITION_FAILED if If-Match names another generation. */
function checkIfMatch(call: Call, service: ManagedServiceObject): void {
  if (call.ifMatch === undefined || call.ifMatch === "*" || call.ifMatch === etag(service)) return;
  throw new HoldfastError("PRECONDITION_FAILED", `The service is at ${etag(service)} now.`);
}

/** The request with the engine's name in place of an alias. */
function withEngine(request: CreateManagedServiceRequest): CreateManagedServiceRequest {
  return { ...request, databaseType: engineNamed(request.databaseType) };
}

/** The filter of a list request, and a label that binds its cursors to the filter. */
function listFilter(
  request: ListManagedServicesRequest,
  family: ServiceFamily,
): {
  accepts: (service: ManagedServiceObject) => boolean;
  label: readonly unknown[];
} {
  const { name, status, tag } = request;
  const databaseType = request.databaseType === undefined ? undefined : engineNamed(request.databaseType);
  const colon = tag?.indexOf(":") ?? -1;
  const [key, value] = tag === undefined ? [] : [tag.slice(0, colon), tag.slice(colon + 1)];
  return {
    label: [name, status, databaseType, tag, ...(family === "databases" ? [] : [family])],
    accepts: ({ metadata, spec, status: current }) =>
      familyOf(spec.databaseType) === family &&
      (name === undefined || metadata.name === name) &&
      (status === undefined || serviceStatuses[current.state] === status) &&
      (databaseType === undefined || spec.databaseType === databaseType) &&
      (key === undefined || lookUp(spec.tags, key) === value),
  };
}
