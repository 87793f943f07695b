import { lookUp } from "@holdfast/common/look-up.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createOperationApi, type OperationApiDeps } from "./operation-api.ts";
import { operationGauges } from "./operation-gauges.ts";
import { createOperationReconciler } from "./operation-reconciler.ts";
import { operationKind, type Subject } from "./operation.ts";
import { createAsynchronousTasks, type AsynchronousTasks, createTaskApi } from "./task/asynchronous-tasks.ts";
import { createTaskIds, type TaskIds } from "./task/task-ids.ts";
import type { TaskSource } from "./task/task-source.ts";

interface OperationSystemDeps extends Pick<OperationApiDeps, "access"> {
  /** Collections of operations' subjects, by the name of their kind; `get` returns undefined for a deleted subject. */
  readonly subjects: Readonly<Record<string, { get(id: string): unknown }>>;
}

/** Parts of this system that other systems use. */
export interface OperationSystem {
  readonly taskIds: TaskIds;
  readonly asynchronous: AsynchronousTasks;
  /** Adds a source of tasks. Call it before the API serves. */
  addTaskSource(source: TaskSource): void;
}

/**
 * Work that takes time. An operation belongs to a subject, such as a service; the subject's reconciler advances it with
 * the functions of operation.ts, and users poll it. Ended operations are retained for a while
 * (operation-reconciler.ts). A task is work of an agent whose result is fetched later: its id encodes its reference,
 * sealed for the organization, and each feature reads its own tasks (task/task-source.ts).
 */
export const operationSystem = declareSystem({ name: "operation", open: openOperationSystem });

function openOperationSystem(
  kernel: Kernel,
  { access, subjects }: OperationSystemDeps,
): System<{ readonly operation: OperationSystem }> {
  const operations = kernel.collections.open(operationKind);
  const exists = ({ kind, id }: Subject) => lookUp(subjects, kind)?.get(id) !== undefined;
  const taskIds = createTaskIds(kernel.sealer);
  const sources: TaskSource[] = [];
  const asynchronous = createAsynchronousTasks(taskIds, sources);
  return {
    name: "operation",
    gives: {
      operation: {
        taskIds,
        asynchronous,
        addTaskSource: (source) => {
          sources.push(source);
        },
      },
    },
    serviceGauges: operationGauges(operations),
    rpcs: [createOperationApi({ ...kernel, operations, access }), createTaskApi({ asynchronous })],
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
