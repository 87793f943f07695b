import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { defaultUser } from "@holdfast/common/engine-catalogue/default-names.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type ManagedService,
  ManagedServiceService,
  type UpdateManagedServiceRequest,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { auditOf, mayTouch, organizationOf, requireUnlimited } from "../access/caller.ts";
import type { Cursors } from "../page/cursor.ts";
import type { Quotas } from "../access/organization/quotas.ts";
import type { CatalogData } from "../catalog/catalog.ts";
import type { EngineOffer } from "../catalog/engine-offer.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { newUser } from "../database-user/new-user.ts";
import type { WaitingMachines } from "../waiting-machine/waiting-machines.ts";
import type { OperationObject } from "../operation/operation.ts";
import { createKeyedMutex } from "../runtime/keyed-mutex.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import { retryConflict } from "../store/retry-conflict.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import { connectionOf } from "./connection.ts";
import { createHeardServices } from "./heard-services.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { managedServiceMessage, nodeMessage, type PendingSummary } from "./managed-service-message.ts";
import { newService, newServiceFaults } from "./new-service.ts";
import { placeService } from "./placement.ts";
import type { ServiceAccess } from "./service-access.ts";
import { listFilter } from "./service-filter.ts";
import type { ServiceLogs } from "./service-logs.ts";
import { newShortId } from "./service-names.ts";
import { requestVerb, type Verb } from "./service-verbs.ts";
import { taskSummaryOf } from "./task-summary.ts";
import { updateService, updateServiceFaults } from "./update-service.ts";

export interface ManagedServiceApiDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly quotas: Quotas;
  readonly organizations: Pick<Collection<unknown>, "reached">;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
  readonly sealer: Sealer;
  readonly logs: ServiceLogs;
  readonly waiting: WaitingMachines;
  readonly catalog: CatalogData;
  readonly engines: () => readonly EngineOffer[];
  readonly defaultAllowedCidrs: readonly string[];
  readonly domain: string;
  readonly trustBundle: () => string;
  /** What waits to be done to the service. */
  readonly pendingOf: (service: ManagedServiceObject) => readonly PendingSummary[];
  readonly fleet: Pick<Fleet, "observation" | "session">;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The RPCs of managed services. */
export function createManagedServiceApi(deps: ManagedServiceApiDeps): ServedService {
  const { access, services, cursors } = deps;
  // Creations of one organization share its counter, so they go one by one here instead of colliding in the store.
  const creating = createKeyedMutex();

  /** The message of an object at rest, made once for as long as the object is the current one. */
  const messages = new WeakMap<ManagedServiceObject, ManagedService>();
  const { heard } = createHeardServices(deps.fleet, deps.clock.now);

  const shown = (object: ManagedServiceObject, operation: OperationObject | undefined) =>
    managedServiceMessage(object, operation, deps.pendingOf(object));

  async function message({ object: stored }: Stored<ManagedServiceObject>, call: Call): Promise<ManagedService> {
    const object = heard(stored);
    const pending = deps.pendingOf(stored);
    const known = messages.get(object);
    if (known !== undefined && pending.length === 0) return known;
    const operation = await access.inProgress(object, call.signal);
    const made = Object.freeze(managedServiceMessage(object, operation?.object, pending));
    // What is pending has times that pass, whatever becomes of the object.
    if (object.status.operationId === null && pending.length === 0) messages.set(object, made);
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

  const verb = (name: Verb) => (input: { id: string }, call: Call) =>
    retryConflict(call.signal, async () => {
      const service = access.require(input.id, call);
      checkIfMatch(call, service.object);
      const current = await access.inProgress(service.object, call.signal);
      const outcome = requestVerb(service.object, name, current?.object, deps.newId(), deps.clock.now());
      if (outcome.kind === "underWay") return message(service, call);
      const unit = deps.begin();
      if (current !== undefined && outcome.ended !== undefined) unit.update("operation", current, outcome.ended);
      unit.create("operation", outcome.operation);
      unit.update("managed-service", service, outcome.after);
      unit.audit(auditOf(call, `managed-service.${name}`, "managed-service", input.id));
      unit.answer(call, shown(outcome.after, outcome.operation));
      return answer(call, input.id, await unit.commit(call.signal), outcome.after, outcome.operation);
    });

  const handlers: Handlers<typeof ManagedServiceService> = {
    createManagedService: async (request, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      return creating(organizationId, () =>
        retryConflict(call.signal, async () => {
          const id = deps.newId();
          const { service: asked, operation } = newService(request, {
            organizationId,
            serviceId: id,
            nodeId: deps.newId(),
            operationId: deps.newId(),
            shortId: newShortId(),
            domain: deps.domain,
            now: deps.clock.now(),
            catalog: deps.catalog,
            engines: deps.engines(),
            defaultAllowedCidrs: deps.defaultAllowedCidrs,
          });
          const unit = deps.begin();
          await deps.quotas.claim(unit, organizationId, { services: 1, storageGb: asked.spec.storageSizeGb });
          const placement = await placeService(asked, deps, call.signal);
          const { service } = placement;
          unit.claimName("managed-service", organizationId, request.name, id);
          unit.create("managed-service", service);
          unit.create("operation", operation);
          const user = { serviceId: id, organizationId, username: defaultUser, role: "admin" } as const;
          unit.create(
            "database-user",
            newUser({ ...user, engine: service.spec.databaseType, sealer: deps.sealer, now: deps.clock.now() }).user,
          );
          unit.audit(auditOf(call, "managed-service.create", "managed-service", id));
          unit.answer(call, managedServiceMessage(service, operation));
          placement.claim(unit);
          const revision = await unit.commit(call.signal).catch((error: unknown) => {
            placement.giveBack();
            throw error;
          });
          await deps.organizations.reached(revision, 1_000);
          return answer(call, id, revision, service, operation);
        }),
      );
    },

    listManagedServices: async (request, call) => {
      const { accepts, label } = listFilter(request);
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
        if (after === service.object) return message(service, call);
        const unit = deps.begin();
        if (rename !== undefined) {
          unit.releaseName("managed-service", service.object.metadata.organizationId, rename.from);
          unit.claimName("managed-service", service.object.metadata.organizationId, rename.to, request.id);
        }
        unit.update("managed-service", service, after);
        unit.audit(auditOf(call, "managed-service.update", "managed-service", request.id));
        return answer(call, request.id, await unit.commit(call.signal), after);
      }),

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

function etag(service: ManagedServiceObject): string {
  return `"${service.metadata.generation}"`;
}

/** Throws PRECONDITION_FAILED when If-Match names another generation. */
function checkIfMatch(call: Call, service: ManagedServiceObject): void {
  if (call.ifMatch === undefined || call.ifMatch === "*" || call.ifMatch === etag(service)) return;
  throw new HoldfastError("PRECONDITION_FAILED", `The service is at ${etag(service)} now.`);
}
