import { create } from "@bufbuild/protobuf";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type CreateQueueRequest,
  type Queue,
  type QueueService,
  type UpdateQueueRequest,
  QueueSchema,
  QueueStatus,
} from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { ListEngineDatabasesSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { requireCapacity } from "#kernel/store/quota.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { requireUnlimited } from "#access/caller.ts";
import { mutate, type MutationOutcome } from "#access/mutate.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import { type Cursors, pageByName } from "#kernel/page/cursor.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { whenChanged } from "#kernel/store/when-changed.ts";
import type { UnitOfWork, Changes } from "#kernel/store/unit-of-work.ts";
import {
  afterEvent,
  changedQueue,
  newQueue,
  queueKind,
  queueQuota,
  type QueueObject,
  queueObjectId,
  serviceOfQueue,
} from "./queue.ts";
import type { QueueAccess } from "./queue-access.ts";
import type { QueueState } from "./queue-lifecycle.ts";

export interface QueueDefinitionDeps {
  readonly queues: Collection<QueueObject>;
  readonly access: QueueAccess;
  readonly tasks: EngineTasks;
  readonly cursors: Cursors;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
}

type Definitions = Pick<
  Handlers<typeof QueueService>,
  "createQueue" | "listQueues" | "getQueue" | "updateQueue" | "deleteQueue"
>;

/** Maximum wait for the machine to apply changed settings; an unreachable machine applies them later. */
const applyTimeoutMs = 5_000;

/** The RPCs of queues. They write the spec; the reconciler applies it. */
export function queueDefinitions(deps: QueueDefinitionDeps): Definitions {
  const { queues, access, clock } = deps;
  const creating = createKeyedMutex();

  const queuesOf = (serviceId: string) => queues.by(serviceOfQueue, serviceId).map(({ object }) => object);

  async function requireDatabase(serviceId: string, database: string, call: Call): Promise<void> {
    const { object } = access.running(serviceId, call);
    const value = create(ListEngineDatabasesSchema);
    const { databases } = await deps.tasks.run(object, { case: "listEngineDatabases", value }, call.signal);
    const found = databases.find(({ name }) => name === database);
    if (found?.state === "invalid")
      throw new HoldfastError(
        "NOT_POSSIBLE",
        `The database ${database} is invalid, because its DROP DATABASE was interrupted. Drop it again.`,
      );
    if (found !== undefined) return;
    throw new HoldfastError("NOT_POSSIBLE", `The engine has no database ${database}.`);
  }

  async function createOne(request: CreateQueueRequest, unit: Changes, call: Call): Promise<MutationOutcome<Queue>> {
    const { serviceId, name } = request;
    const stored = access.running(serviceId, call);
    const { object: service, modRevision } = stored;
    // A creation writes the service, so the collection at the service's revision includes all created queues.
    await queues.untilRevision(modRevision, 1_000);
    if ((await queues.getCurrent(queueObjectId(serviceId, name), call.signal)) !== undefined)
      throw new HoldfastError("QUEUE_EXISTS", `The service has a queue ${name}.`);
    requireCapacity(queueQuota, queuesOf(serviceId), "The service has");
    const queue = newQueue(
      {
        serviceId,
        organizationId: service.metadata.organizationId,
        name,
        queueId: deps.newId(),
        databaseName: request.databaseName ?? defaultDatabase,
        visibilityTimeoutSeconds: request.visibilityTimeoutSeconds ?? 30,
        maxAttempts: request.maxAttempts ?? 5,
        dlqEnabled: request.dlqEnabled ?? true,
      },
      clock.now(),
    );
    const response = queueMessage(queue);
    // The write makes concurrent creations conflict, and a concurrent deletion of the service.
    unit.update(managedServiceKind, stored, service);
    unit.create(queueKind, queue);
    return { id: serviceId, response };
  }

  function change(
    { serviceId, name }: { readonly serviceId: string; readonly name: string },
    verb: string,
    call: Call,
    design: (queue: QueueObject) => QueueObject | undefined,
  ): Promise<Queue> {
    return mutate(
      deps,
      call,
      { action: `queue.${verb}`, kind: "managed-service", visibleIn: [queues] },
      async (unit) => {
        access.queue(serviceId, name, call);
        const queue = await queues.getCurrent(queueObjectId(serviceId, name), call.signal);
        if (queue === undefined) throw new HoldfastError("QUEUE_NOT_FOUND", `The service has no queue ${name}.`);
        const after = design(queue.object);
        if (after === undefined) return { unchanged: queueMessage(queue.object) };
        unit.update(queueKind, queue, after);
        return { id: serviceId, result: queueMessage(after) };
      },
    );
  }

  /** Resolves when the database has the settings of an Active queue, so that they apply to the next message. */
  async function untilApplied({ serviceId, name }: { readonly serviceId: string; readonly name: string }, call: Call) {
    if (access.service(serviceId, call).object.spec.power === "off") return;
    const id = queueObjectId(serviceId, name);
    const isApplied = () => {
      const queue = queues.get(id)?.object;
      return queue?.status.state !== "Active" || queue.status.observedGeneration >= queue.metadata.generation;
    };
    await whenChanged(queues, id, isApplied, applyTimeoutMs, call.signal);
  }

  return {
    async createQueue(request, call) {
      requireUnlimited(call);
      await requireDatabase(request.serviceId, request.databaseName ?? defaultDatabase, call);
      const mutation = { action: "queue.create", kind: "managed-service", visibleIn: [queues] } as const;
      return creating(request.serviceId, () => mutate(deps, call, mutation, (unit) => createOne(request, unit, call)));
    },

    async listQueues(request, call) {
      access.service(request.serviceId, call);
      const page = deps.cursors.open(call, `queues ${request.serviceId}`, null, request);
      const { items, next } = pageByName(queuesOf(request.serviceId), ({ metadata }) => metadata.name, page);
      return { queues: items.map(queueMessage), ...page.next(next) };
    },

    getQueue: async ({ serviceId, name }, call) => queueMessage(access.queue(serviceId, name, call).queue.object),

    async updateQueue(request, call) {
      const response = await change(request, "update", call, (queue) => {
        const { state } = queue.status;
        if (state === "Deprovisioning" || state === "Failed")
          throw new HoldfastError("WRONG_STATE", `The queue is ${state}.`, { members: { status: state } });
        const { visibilityTimeoutSeconds, maxAttempts, dlqEnabled } = { ...queue.spec, ...changesOf(request) };
        const settings = { visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
        return changedQueue(queue, settings, clock.now());
      });
      await untilApplied(request, call);
      return response;
    },

    // If the state has no row for the event, the deletion is in progress already.
    deleteQueue: (request, call) =>
      change(request, "delete", call, (queue) => afterEvent(queue, "deleteRequested", clock.now())?.after),
  };
}

/** The fields that the request sets; none can be cleared. */
function changesOf({ visibilityTimeoutSeconds, maxAttempts, dlqEnabled }: UpdateQueueRequest) {
  return {
    ...(visibilityTimeoutSeconds === undefined ? {} : { visibilityTimeoutSeconds }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(dlqEnabled === undefined ? {} : { dlqEnabled }),
  };
}

const statuses: Readonly<Record<QueueState, QueueStatus>> = {
  Pending: QueueStatus.PENDING,
  Provisioning: QueueStatus.PROVISIONING,
  Active: QueueStatus.ACTIVE,
  Deprovisioning: QueueStatus.DEPROVISIONING,
  Failed: QueueStatus.FAILED,
};

/** The message of a queue. */
function queueMessage({ metadata, spec, status }: QueueObject): Queue {
  const { serviceId, queueId: id, databaseName, visibilityTimeoutSeconds, maxAttempts, dlqEnabled } = spec;
  return create(QueueSchema, {
    id,
    serviceId,
    name: metadata.name,
    databaseName,
    visibilityTimeoutSeconds,
    maxAttempts,
    dlqEnabled,
    status: statuses[status.state],
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(status.errorMessage === null ? {} : { errorMessage: status.errorMessage }),
  });
}
