import { randomUUID } from "node:crypto";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { OperationSystem } from "#operation/operation-system.ts";
import { createEngineTasks } from "#services/service/engine-task.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { createQueueApi } from "./create-queue-api.ts";
import { createQueueCalls } from "./message/queue-calls.ts";
import { createQueueTasks } from "./message/queue-tasks.ts";
import { createReceipts } from "./message/receipts.ts";
import { createQueueAccess } from "./queue-access.ts";
import { createQueueAdoption } from "./queue-adoption.ts";
import { createQueueWork } from "./queue-reconciler.ts";
import { queueEventDefinitions } from "./queue-event-definitions.ts";
import { createQueueRegistry } from "./queue-registry.ts";
import { queueFigures } from "./queue-figures.ts";
import { queueKind } from "./queue.ts";

interface QueueSystemDeps {
  readonly fleet: Pick<FleetSystem, "fleet" | "contents">;
  readonly operation: OperationSystem;
  readonly access: ServiceAccess;
}

/** Queues inside the databases of services. */
export const queueSystem = declareSystem({
  name: "queue",
  events: queueEventDefinitions,
  audited: { "holdfast.v1.QueueService": "managed-service" },
  open: openQueueSystem,
});

function openQueueSystem(kernel: Kernel, deps: QueueSystemDeps): System {
  const { access, operation } = deps;
  const { fleet, contents } = deps.fleet;
  const { collections, sealer, outbox } = kernel;
  const services = collections.open(managedServiceKind);
  const queues = collections.open(queueKind);
  const registry = createQueueRegistry({ fleet });
  const adoption = createQueueAdoption({ ...kernel, fleet, services, queues, registry });
  const calls = createQueueCalls({ fleet, contents, refused: adoption.doubt });
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
        auditNow: outbox.auditNow,
      }),
    ],
    serviceFigures: queueFigures(queues),
    work: [
      createQueueWork({ ...all, clockJumped: () => kernel.holds.list().some(({ kind }) => kind === "clock") }),
      adoption,
    ],
  };
}
