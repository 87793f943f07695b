import type { Call } from "@holdfast/common/call.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { type QueueObject, queueObjectId } from "./queue.ts";

/** A queue with its service. */
export interface FoundQueue {
  readonly service: Stored<ManagedServiceObject>;
  readonly queue: Stored<QueueObject>;
}

/** Finds queues for a caller. */
export interface QueueAccess {
  /** Throws SERVICE_NOT_FOUND, and NOT_SUPPORTED for an engine without queues. */
  service(serviceId: string, call: Call): Stored<ManagedServiceObject>;
  /** The service in state Running. Throws WRONG_STATE, and the errors of `service`. */
  running(serviceId: string, call: Call): Stored<ManagedServiceObject>;
  /** The queue and its service. Throws QUEUE_NOT_FOUND, and the errors of `service`. */
  queue(serviceId: string, name: string, call: Call): FoundQueue;
  /** An Active queue of a Running service. Throws WRONG_STATE, QUEUE_NOT_ACTIVE, and the errors of `queue`. */
  active(serviceId: string, name: string, call: Call): FoundQueue;
}

export function createQueueAccess(access: ServiceAccess, queues: Collection<QueueObject>): QueueAccess {
  function withQueues(service: Stored<ManagedServiceObject>): Stored<ManagedServiceObject> {
    const { databaseType } = service.object.spec;
    if (engineOf(databaseType)?.hasQueues === true) return service;
    throw new HoldfastError("NOT_SUPPORTED", `${databaseType} has no queues.`);
  }
  const service: QueueAccess["service"] = (id, call) => withQueues(access.require(id, call));
  const running: QueueAccess["running"] = (id, call) => {
    service(id, call);
    return access.requireRunning(id, call);
  };

  function queue(serviceId: string, name: string, call: Call): FoundQueue {
    const owner = service(serviceId, call);
    const found = queues.get(queueObjectId(serviceId, name));
    if (found === undefined) throw new HoldfastError("QUEUE_NOT_FOUND", `The service has no queue ${name}.`);
    return { service: owner, queue: found };
  }

  return {
    service,
    running,
    queue,
    active(serviceId, name, call) {
      const found = queue(serviceId, name, call);
      running(serviceId, call);
      const { state } = found.queue.object.status;
      if (state === "Active") return found;
      throw new HoldfastError("QUEUE_NOT_ACTIVE", `The queue ${name} is ${state}.`, { members: { status: state } });
    },
  };
}
