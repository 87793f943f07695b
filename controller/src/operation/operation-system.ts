import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { countBy, type ServiceGauge } from "#kernel/metrics/service-gauge.ts";
import { definePart } from "#kernel/part.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { createOperationApi } from "./operation-api.ts";
import { createOperationReconciler } from "./operation-reconciler.ts";
import {
  operationKind,
  type OperationObject,
  operationSubject,
  operationSubjects,
  type Subject,
  subjectKey,
  type SubjectKind,
} from "./operation.ts";
import {
  type AsynchronousTasks,
  createAsynchronousTasks,
  createTaskApi,
  type TaskSource,
} from "./task/asynchronous-tasks.ts";
import { createTaskIds, type TaskIds } from "./task/task-ids.ts";

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
 * sealed for the organization, and the feature that created it reads it (task/asynchronous-tasks.ts).
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

/**
 * Gauges of the retained operations of a subject, such as a service: numbers of operations by type and result, and the
 * last duration.
 */
export function operationGauges(
  operations: Pick<Collection<OperationObject>, "by">,
  subjects: readonly Pick<SubjectKind, "kind">[],
): ServiceGauge[] {
  // Ids are unique across kinds.
  const of = (id: string) =>
    subjects
      .flatMap(({ kind }) => operations.by(operationSubject, subjectKey({ kind, id })))
      .map(({ object }) => object)
      .filter(({ status }) => status.finishedAt !== null);
  const keyOf = ({ spec, status }: OperationObject) => `${spec.type} ${status.state}`;
  const labelsOf = (key: string) => {
    const [type = "", result = ""] = key.split(" ");
    return { type, result };
  };
  const labels = ["type", "result"];
  return [
    {
      name: "operations",
      help: "Retained operations of the service that have ended",
      labels,
      read: (id) => Array.from(countBy(of(id), keyOf), ([key, value]) => ({ labels: labelsOf(key), value })),
    },
    {
      name: "operation_last_duration_seconds",
      help: "Duration of the last operation of the type and result",
      labels,
      *read(id) {
        for (const [key, group] of Map.groupBy(of(id), keyOf)) {
          const { startedAt, finishedAt } = group.reduce((newest, candidate) =>
            endOf(candidate) > endOf(newest) ? candidate : newest,
          ).status;
          if (startedAt === null || finishedAt === null) continue;
          yield { labels: labelsOf(key), value: (finishedAt - startedAt) / 1_000 };
        }
      },
    },
  ];
}

function endOf({ status }: OperationObject): number {
  return status.finishedAt ?? 0;
}
