import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EngineQueue } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { afterEvent, changedQueue, queueKind, type QueueObject, serviceOfQueue } from "./queue.ts";
import { queueEvent } from "./queue-events.ts";
import type { QueueRegistry, RegistryOutcome } from "./queue-registry.ts";

interface MissingQueuesDeps {
  readonly queues: Pick<Collection<QueueObject>, "by">;
  readonly registry: Pick<QueueRegistry, "put" | "databases">;
  readonly commit: (fill: (unit: Changes) => void, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Handles queues that are not in their database any more. */
export interface MissingQueues {
  /** Handles each Active queue without a row in its database; false if some have to be handled later. */
  find(service: ManagedServiceObject, found: readonly EngineQueue[], signal: AbortSignal): Promise<boolean>;
}

export function createMissingQueues({ queues, registry, commit, clock, log }: MissingQueuesDeps): MissingQueues {
  /** Databases that the last check did not find, by id of the queue. */
  const missingBefore = new Map<string, string>();

  /**
   * An Active queue that is missing in its database gets the database that has its row (after a rename), is registered
   * again (after a restore to an earlier time), or fails if its database was dropped.
   */
  async function find(
    service: ManagedServiceObject,
    found: readonly EngineQueue[],
    signal: AbortSignal,
  ): Promise<boolean> {
    let allSettled = true;
    for (const { id } of found) missingBefore.delete(id);
    for (const queue of queues.by(serviceOfQueue, service.metadata.id)) {
      const { queueId, databaseName } = queue.object.spec;
      if (queue.object.status.state !== "Active") continue;
      const rows = found.filter(({ id }) => id === queueId);
      if (rows.some(({ database }) => database === databaseName)) continue;
      const [row] = rows;
      if (row !== undefined && rows.length === 1) await follow(queue, row, signal);
      else {
        const put = await registry.put(service, queue.object, signal);
        const isSettled = put.kind === "done" || (await confirmMissing(service, queue, put, signal));
        allSettled = isSettled && allSettled;
      }
    }
    return allSettled;
  }

  /**
   * Fails the queue if its database was missing in two checks, because during a rename a database has neither name. A
   * database that refuses connections is not missing. Returns false if another check is needed.
   */
  async function confirmMissing(
    service: ManagedServiceObject,
    queue: Stored<QueueObject>,
    put: Exclude<RegistryOutcome<true>, { kind: "done" }>,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (put.kind === "notYet") return false;
    const databases = await registry.databases(service, signal);
    if (databases.kind !== "done") return false;
    const { queueId, databaseName } = queue.object.spec;
    if (databases.value.includes(databaseName)) return true;
    const isDropped = missingBefore.get(queueId) === databaseName;
    if (isDropped) {
      await fail(queue, put.message, signal);
      missingBefore.delete(queueId);
    } else missingBefore.set(queueId, databaseName);
    return isDropped;
  }

  async function follow(queue: Stored<QueueObject>, { database }: EngineQueue, signal: AbortSignal): Promise<void> {
    const { spec, metadata } = queue.object;
    const after = changedQueue(queue.object, { databaseName: database }, clock.now());
    await commit((unit) => unit.update(queueKind, queue, after), signal);
    const databases = { from: spec.databaseName, to: database };
    log.info("queue updated after its database was renamed", {
      service: spec.serviceId,
      queue: metadata.name,
      ...databases,
    });
  }

  async function fail(queue: Stored<QueueObject>, message: string, signal: AbortSignal): Promise<void> {
    const moved = afterEvent(queue.object, "refused", clock.now(), message);
    if (moved === undefined) return;
    const event = queueEvent(moved.effect, moved.after);
    await commit((unit) => {
      unit.update(queueKind, queue, moved.after);
      if (event !== undefined) unit.event(event);
    }, signal);
    log.info("queue changed state", {
      service: queue.object.spec.serviceId,
      queue: queue.object.metadata.name,
      event: "refused",
    });
  }

  return { find };
}
