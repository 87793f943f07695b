import { randomUUID } from "node:crypto";
import { type ServedService, serve } from "@holdfast/common/call.ts";
import { QueueService } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { operationPart } from "#operation/operation-system.ts";
import { createEngineTasks } from "#services/service/engine-task.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { serviceAccessPart } from "#services/service/service-access.ts";
import { countBy, type ServiceGauge } from "#kernel/metrics/service-gauge.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { createQueueCalls } from "./message/queue-calls.ts";
import { createQueueTasks } from "./message/queue-tasks.ts";
import { createReceipts } from "./message/receipts.ts";
import { createQueueAccess } from "./queue-access.ts";
import { createQueueAdoption } from "./queue-adoption.ts";
import { createQueueWork } from "./queue-reconciler.ts";
import { queueEventDefinitions } from "./queue-events.ts";
import { createQueueRegistry } from "./queue-registry.ts";
import { queueKind, type QueueObject, serviceOfQueue } from "./queue.ts";
import { createEnqueue, createLargeRequests } from "./message/enqueue.ts";
import { createPayloadChecks } from "./message/payload-checks.ts";
import { type QueueMessageDeps, queueMessages } from "./message/queue-message-api.ts";
import { type QueueDefinitionDeps, queueDefinitions } from "./queue-api.ts";

/**
 * Message queues in the databases of services. The API stores a queue's settings, the reconciler writes them into the
 * registry of its database through the agent, and messages go directly from the API to the database.
 */
export const queueSystem = declareSystem({
  name: "queue",
  events: queueEventDefinitions,
  audited: { "holdfast.v1.QueueService": "managed-service" },
  open: openQueueSystem,
});

function openQueueSystem(kernel: Kernel, use: Use): System {
  const access = use(serviceAccessPart);
  const operation = use(operationPart);
  const { fleet, contents } = use(fleetPart);
  const { collections, sealer } = kernel;
  const services = collections.open(managedServiceKind);
  const queues = collections.open(queueKind);
  const registry = createQueueRegistry({ fleet });
  const adoption = createQueueAdoption({ ...kernel, fleet, services, queues, registry });
  const calls = createQueueCalls({ fleet, contents, refused: adoption.suspect });
  const { keyedHash } = sealer;
  const queueTasks = createQueueTasks({ queues, access, calls, ids: operation.taskIds, keyedHash, newKey: randomUUID });
  for (const source of queueTasks.sources) operation.addTaskSource(source);
  const all = { ...kernel, fleet, services, queues, registry };
  return {
    name: "queue",
    rpcs: [
      createQueueApi({
        ...all,
        access: createQueueAccess(access, queues),
        tasks: createEngineTasks(all),
        calls,
        queueTasks,
        receipts: createReceipts(sealer),
        asynchronous: operation.asynchronous,
      }),
    ],
    serviceGauges: queueGauges(queues),
    work: [
      createQueueWork({
        ...all,
        clockJumped: () => kernel.automationPauses.list().some(({ kind }) => kind === "clock"),
      }),
      adoption,
    ],
  };
}

/** The RPCs of queues and of their messages. */
function createQueueApi(deps: QueueDefinitionDeps & Omit<QueueMessageDeps, "enqueue" | "payloads">): ServedService {
  const payloads = createPayloadChecks();
  const enqueue = createEnqueue(deps.calls, createLargeRequests(deps.clock.monotonicMs));
  const handlers = { ...queueDefinitions(deps), ...queueMessages({ ...deps, enqueue, payloads }) };
  return serve(QueueService, handlers, { enqueueMessages: payloads.check });
}

/** Gauge of a service's queues by state. Metrics of their messages come from its machine. */
function queueGauges(queues: Pick<Collection<QueueObject>, "by">): ServiceGauge[] {
  const stateOf = (queue: QueueObject) => queue.status.state;
  const of = (serviceId: string) => queues.by(serviceOfQueue, serviceId).map(({ object }) => object);
  return [
    {
      name: "queues",
      help: "Queues of the service, by their state",
      labels: ["state"],
      read: (id) => Array.from(countBy(of(id), stateOf), ([state, value]) => ({ labels: { state }, value })),
    },
  ];
}
