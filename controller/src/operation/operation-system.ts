import { lookUp } from "@holdfast/common/look-up.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createOperationApi, type OperationApiDeps } from "./operation-api.ts";
import { operationFigures } from "./operation-figures.ts";
import { createOperationReconciler } from "./operation-reconciler.ts";
import { operationKind, type Subject } from "./operation.ts";
import { createAsynchronousTasks, type AsynchronousTasks } from "./task/asynchronous-tasks.ts";
import { createTaskApi } from "./task/task-api.ts";
import { createTaskIds, type TaskIds } from "./task/task-ids.ts";
import type { TaskSource } from "./task/task-source.ts";

interface OperationSystemDeps extends Pick<OperationApiDeps, "access"> {
  /**
   * Collections of the subjects of operations, by the name of their kind; `get` answers undefined for a deleted
   * subject.
   */
  readonly subjects: Readonly<Record<string, { get(id: string): unknown }>>;
}

/** What other systems need of operations and tasks. */
export interface OperationSystem {
  readonly taskIds: TaskIds;
  readonly asynchronous: AsynchronousTasks;
  /** Adds a source of tasks; before the API serves. */
  addTaskSource(source: TaskSource): void;
}

/** Work that takes time: operations of objects, and tasks whose result is fetched later. */
export const operationSystem = declareSystem({ name: "operation", open: openOperationSystem });

function openOperationSystem(
  kernel: Kernel,
  { access, subjects }: OperationSystemDeps,
): System<{ readonly operation: OperationSystem }> {
  const operations = kernel.collections.open(operationKind);
  const isThere = ({ kind, id }: Subject) => lookUp(subjects, kind)?.get(id) !== undefined;
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
    serviceFigures: operationFigures(operations),
    rpcs: [createOperationApi({ ...kernel, operations, access }), createTaskApi({ asynchronous })],
    work: [
      {
        reconciler: createOperationReconciler({ ...kernel, operations, isThere }),
        keys: () => operations.ids(),
        subscribe: (onChange) => operations.subscribe(onChange),
        inputs: (id) => operations.get(id)?.modRevision ?? 0n,
      },
    ],
  };
}
