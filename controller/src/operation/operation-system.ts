import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { definePart } from "#kernel/part.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createOperationApi } from "./operation-api.ts";
import { operationGauges } from "./operation-gauges.ts";
import { createOperationReconciler } from "./operation-reconciler.ts";
import { operationKind, operationSubjects, type Subject } from "./operation.ts";
import { createAsynchronousTasks, type AsynchronousTasks, createTaskApi } from "./task/asynchronous-tasks.ts";
import { createTaskIds, type TaskIds } from "./task/task-ids.ts";
import type { TaskSource } from "./task/task-source.ts";

/** Parts of this system that other systems use. */
export interface OperationSystem {
  readonly taskIds: TaskIds;
  readonly asynchronous: AsynchronousTasks;
  /** Adds a source of tasks. Call it while systems open, before the API accepts calls. */
  addTaskSource(source: TaskSource): void;
}

export const operationPart = definePart<OperationSystem>("operations");

/**
 * Operations and asynchronous tasks. An operation belongs to a subject, such as a service; the subject's reconciler
 * advances it with the functions of operation.ts, and users poll it. Ended operations are retained for up to 30 days
 * (operation-reconciler.ts). A task is work of an agent whose result is fetched later: its id encodes its reference,
 * sealed for the organization, and the feature that created it reads it (task/task-source.ts).
 */
export const operationSystem = declareSystem({
  name: "operation",
  provides: [operationPart],
  open: openOperationSystem,
});

function openOperationSystem(kernel: Kernel, use: Use): System {
  const operations = kernel.collections.open(operationKind);
  const subjects = use(operationSubjects);
  const kinds = new Map(subjects.map((subject) => [subject.kind, subject]));
  const exists = ({ kind, id }: Subject) => kinds.get(kind)?.get(id) !== undefined;
  const taskIds = createTaskIds(kernel.sealer);
  const sources: TaskSource[] = [];
  const asynchronous = createAsynchronousTasks(taskIds, sources);
  return {
    name: "operation",
    provides: [
      operationPart.of({
        taskIds,
        asynchronous,
        addTaskSource: (source) => {
          sources.push(source);
        },
      }),
    ],
    serviceGauges: operationGauges(operations, subjects),
    rpcs: [createOperationApi({ ...kernel, operations, subjects }), createTaskApi({ asynchronous })],
    work: [
      {
        reconciler: createOperationReconciler({ ...kernel, operations, exists }),
        keys: () => operations.ids(),
        subscribe: (onChange) => operations.subscribe(onChange),
        inputs: (id) => operations.get(id)?.modRevision ?? 0n,
      },
    ],
  };
}
