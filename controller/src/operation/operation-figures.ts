import { countBy, type ServiceFigure } from "#kernel/metrics/service-figure.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type OperationObject, operationSubject, subjectKey } from "./operation.ts";

/** Operations of a service as long as they are kept: a failover by its result and its seconds is one of them. */
export function operationFigures(operations: Pick<Collection<OperationObject>, "by">): ServiceFigure[] {
  const of = (serviceId: string) =>
    operations
      .by(operationSubject, subjectKey({ kind: "managed-service", id: serviceId }))
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
      help: "Operations of the service that ended, as long as they are kept",
      labels,
      read: (id) => Array.from(countBy(of(id), keyOf), ([key, value]) => ({ labels: labelsOf(key), value })),
    },
    {
      name: "operation_last_duration_seconds",
      help: "How long the last operation of the kind took, from its beginning to its end",
      labels,
      *read(id) {
        for (const [key, group] of Map.groupBy(of(id), keyOf)) {
          const { startedAt, finishedAt } = group.reduce((one, other) =>
            endOf(other) > endOf(one) ? other : one,
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
