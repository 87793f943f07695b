import { refuseIfManaged } from "#access/managed-by-parent.ts";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type ManagedService,
  ManagedServiceService,
  type UpdateManagedServiceRequest,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { auditOf, mayTouch, organizationOf } from "#access/caller.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { newUser } from "../contents/user/new-user.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { connectionOf } from "./connection.ts";
import { createLiveServices } from "./live-services.ts";
import { managedServiceKind, type ManagedServiceObject } from "./managed-service.ts";
import {
  type BackupsSummary,
  deletedServiceMessage,
  managedServiceMessage,
  nodeMessage,
  type PendingSummary,
} from "./managed-service-message.ts";
import { newService, newServiceFaults } from "./new-service.ts";
import { withReplicationSecret } from "./member/new-replica.ts";
import type { DeletedServices } from "./deleted-services.ts";
import type { ServiceAccess } from "./service-access.ts";
import { listFilter } from "./service-filter.ts";
import type { ServiceLogs } from "./service-logs.ts";
import type { ServiceCreation } from "./service-creation.ts";
import { requirePooler } from "./pooler.ts";
import { requestVerb, type Verb } from "./service-verbs.ts";
import { taskSummaryOf } from "./task-summary.ts";
import { updateService, updateServiceFaults } from "./update-service.ts";
import { type ResizeDeps, resizeService } from "../scaling/resize-service.ts";
import { withWritesAllowed } from "../scaling/enable-writes.ts";
import { type AskedSize, hasSize } from "../scaling/size-request.ts";

export interface ManagedServiceApiDeps extends ResizeDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  /** The service as it is answered. */
  readonly shown: (object: ManagedServiceObject, operation: OperationObject | undefined) => ManagedService;
  readonly creation: ServiceCreation;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
  readonly sealer: Sealer;
  readonly logs: ServiceLogs;
  readonly engines: () => readonly EngineOffer[];
  readonly trustBundle: () => string;
  /** What waits to be done to the service. */
  readonly pendingOf: (service: ManagedServiceObject) => readonly PendingSummary[];
  /** What can be restored of it; the very same object as long as that is the same, and undefined for an engine without backups. */
  readonly backupsOf: (service: ManagedServiceObject) => BackupsSummary | undefined;
  readonly deleted: DeletedServices;
  readonly fleet: Pick<Fleet, "observation" | "session">;
}

/** The RPCs of managed services. */
export function createManagedServiceApi(deps: ManagedServiceApiDeps): ServedService {
  const { access, services, cursors } = deps;
  /** The message of an object at rest, made once for as long as the object is the current one. */
  const messages = new WeakMap<
    ManagedServiceObject,
    { message: ManagedService; backups: BackupsSummary | undefined }
  >();
  const { live } = createLiveServices(deps.fleet, deps.clock.now);

  const { shown } = deps;

  async function message({ object: stored }: Stored<ManagedServiceObject>, call: Call): Promise<ManagedService> {
    const object = live(stored);
    const pending = deps.pendingOf(stored);
    const backups = deps.backupsOf(stored);
    const known = messages.get(object);
    if (known !== undefined && pending.length === 0 && known.backups === backups) return known.message;
    const operation = await access.inProgress(object, call.signal);
    const made = Object.freeze(managedServiceMessage(object, operation?.object, pending, backups));
    // What is pending has times that pass, whatever becomes of the object.
    if (object.status.operationId === null && pending.length === 0) messages.set(object, { message: made, backups });
    return made;
  }

  /** What a mutation answers: the object as it was committed, once this replica's reads show it. */
  async function answer(
    call: Call,
    id: string,
    revision: bigint,
    after: ManagedServiceObject,
    operation?: OperationObject,
  ) {
    call.setHeader("Holdfast-Revision", String(revision));
    call.setHeader("ETag", etag(after));
    await Promise.all([services.reached(revision, 1_000), deps.operations.reached(revision, 1_000)]);
    return shown(after, operation ?? (await access.inProgress(after, call.signal))?.object);
  }

  const verb = (name: Verb) => (input: { id: string; skipFinalBackup?: boolean | undefined }, call: Call) =>
    retryConflict(call.signal, async () => {
      const service = access.require(input.id, call);
      refuseIfManaged(service.object, name);
      checkIfMatch(call, service.object);
      const current = await access.inProgress(service.object, call.signal);
      const { skipFinalBackup = false } = input;
      const asked = { operationId: deps.newId(), skipFinalBackup, now: deps.clock.now() };
      const outcome = requestVerb(service.object, name, current?.object, asked);
      if (outcome.kind === "underWay") return message(service, call);
      const unit = deps.begin();
      if (current !== undefined && outcome.ended !== undefined) unit.update(operationKind, current, outcome.ended);
      unit.create(operationKind, outcome.operation);
      unit.update(managedServiceKind, service, outcome.after);
      unit.audit(auditOf(call, `managed-service.${name}`, "managed-service", input.id));
      unit.answer(call, shown(outcome.after, outcome.operation));
      return answer(call, input.id, await unit.commit(call.signal), outcome.after, outcome.operation);
    });

  const resize = (name: "resize" | "expand", id: string, asked: AskedSize, call: Call) =>
    retryConflict(call.signal, async () => {
      const service = access.require(id, call);
      refuseIfManaged(service.object, name);
      checkIfMatch(call, service.object);
      const current = await access.inProgress(service.object, call.signal);
      const unit = deps.begin();
      const { after, operation } = await resizeService(service.object, asked, current?.object, unit, deps, call.signal);
      if (operation === undefined) return message(service, call);
      unit.update(managedServiceKind, service, after);
      unit.audit(auditOf(call, `managed-service.${name}`, "managed-service", id));
      unit.answer(call, shown(after, operation));
      return answer(call, id, await unit.commit(call.signal), after, operation);
    });

  const handlers: Handlers<typeof ManagedServiceService> = {
    createManagedService: async (request, call) => {
      const { service, message: created } = await deps.creation.create(call, "managed-service.create", (context) => {
        const asked = newService(request, context);
        const made = { ...asked, service: withReplicationSecret(asked.service, deps.sealer) };
        const { serviceId, organizationId, now } = context;
        const user = { serviceId, organizationId, username: defaultUser, role: "admin" } as const;
        const { databaseType: engine } = made.service.spec;
        return { ...made, users: [newUser({ ...user, engine, sealer: deps.sealer, now }).user] };
      });
      call.setHeader("ETag", etag(service));
      return created;
    },

    listManagedServices: async (request, call) => {
      const { accepts, label } = listFilter(request);
      if (request.deleted === true) {
        const asked = {
          ...cursors.open(call, "deleted-services", label, request),
          organizationId: organizationOf(call),
        };
        const { items, next } = deps.deleted.page(
          (service) => mayTouch(call, "managed-service", service.metadata.id) && accepts(service),
          asked,
        );
        return { services: items.map(deletedServiceMessage), ...asked.next(next) };
      }
      const page = { ...cursors.open(call, "managed-services", label, request), organizationId: organizationOf(call) };
      const isShown = (service: ManagedServiceObject) =>
        mayTouch(call, "managed-service", service.metadata.id) && accepts(service);
      const { items, next } = services.page(isShown, page);
      return { services: await Promise.all(items.map((item) => message(item, call))), ...page.next(next) };
    },

    getManagedService: async ({ id }, call) => {
      const service = access.require(id, call);
      call.setHeader("ETag", etag(service.object));
      return message(service, call);
    },

    updateManagedService: (request: UpdateManagedServiceRequest, call) =>
      retryConflict(call.signal, async () => {
        const service = access.require(request.id, call);
        checkIfMatch(call, service.object);
        const { after, rename } = updateService(service.object, request, deps.clock.now());
        requirePooler(service.object.spec, after.spec, (nodeId) => deps.fleet.observation(nodeId)?.instance);
        if (rename !== undefined) refuseIfManaged(service.object, "rename");
        const asked = askedSize(request);
        if (!hasSize(after, asked)) refuseIfManaged(service.object, "resize");
        const current = await access.inProgress(service.object, call.signal);
        const unit = deps.begin();
        const resized = hasSize(after, asked)
          ? { after, operation: undefined }
          : await resizeService(after, asked, current?.object, unit, deps, call.signal);
        if (resized.after === service.object) return message(service, call);
        if (rename !== undefined) {
          unit.releaseName(managedServiceKind, service.object.metadata.organizationId, rename.from);
          unit.claimName(managedServiceKind, service.object.metadata.organizationId, rename.to, request.id);
        }
        unit.update(managedServiceKind, service, resized.after);
        unit.audit(auditOf(call, "managed-service.update", "managed-service", request.id));
        return answer(call, request.id, await unit.commit(call.signal), resized.after, resized.operation);
      }),

    resizeManagedService: ({ id, planName }, call) => resize("resize", id, { planName }, call),
    enableWrites: ({ id }, call) =>
      retryConflict(call.signal, async () => {
        const service = access.requireRunning(id, call);
        checkIfMatch(call, service.object);
        const after = withWritesAllowed(service.object, deps.fleet, deps.clock.now());
        const unit = deps.begin();
        unit.update(managedServiceKind, service, after);
        unit.audit(auditOf(call, "managed-service.enable-writes", "managed-service", id));
        const operation = (await access.inProgress(after, call.signal))?.object;
        unit.answer(call, shown(after, operation));
        return answer(call, id, await unit.commit(call.signal), after, operation);
      }),
    expandStorage: ({ id, storageSizeGb }, call) => resize("expand", id, { storageSizeGb }, call),

    startManagedService: verb("start"),
    stopManagedService: verb("stop"),
    restartManagedService: verb("restart"),
    deleteManagedService: verb("delete"),

    getConnection: async ({ id }, call) => connectionOf(access.require(id, call).object, deps.trustBundle()),

    listNodes: async ({ id, ...asked }, call) => {
      const { object } = access.require(id, call);
      // Never more nodes than fit one page, so no cursor is ever given out.
      cursors.open(call, "nodes", id, asked);
      return { nodes: object.spec.nodes.map((node) => nodeMessage(object, node)) };
    },

    listLogs: (request, call) => deps.logs.page(access.require(request.id, call).object, request, call),

    getTaskSummary: async ({ id }, call) => {
      const { object } = access.require(id, call);
      return taskSummaryOf(object, (await access.inProgress(object, call.signal))?.object);
    },
  };
  return serve(ManagedServiceService, handlers, {
    createManagedService: (request) => newServiceFaults(request, { catalog: deps.catalog, engines: deps.engines() }),
    updateManagedService: updateServiceFaults,
  });
}

/** The sizes that the mask names. */
function askedSize({ planName, storageSizeGb, updateMask }: UpdateManagedServiceRequest): AskedSize {
  const paths = updateMask?.paths ?? [];
  return {
    ...(paths.includes("plan_name") && planName !== undefined && { planName }),
    ...(paths.includes("storage_size_gb") && storageSizeGb !== undefined && { storageSizeGb }),
  };
}

function etag(service: ManagedServiceObject): string {
  return `"${service.metadata.generation}"`;
}

/** Throws PRECONDITION_FAILED when If-Match names another generation. */
function checkIfMatch(call: Call, service: ManagedServiceObject): void {
  if (call.ifMatch === undefined || call.ifMatch === "*" || call.ifMatch === etag(service)) return;
  throw new HoldfastError("PRECONDITION_FAILED", `The service is at ${etag(service)} now.`);
}
