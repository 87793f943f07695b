import { countBy, type ServiceFigure } from "#kernel/metrics/service-figure.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type QueueObject, serviceOfQueue } from "./queue.ts";

/** The queues of a service; their messages are among what its machine tells. */
export function queueFigures(queues: Pick<Collection<QueueObject>, "by">): ServiceFigure[] {
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
