import { countBy, type ServiceGauge } from "#kernel/metrics/service-gauge.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type OperationObject, operationSubject, type SubjectKind, subjectKey } from "./operation.ts";

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
