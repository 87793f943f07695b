import type { Clock } from "@holdfast/common/clock.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EngineQueue } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { managedServiceKind, type ManagedServiceObject } from "#services/service/managed-service.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  adoptedQueue,
  afterEvent,
  queueIdOf,
  queueKind,
  type QueueObject,
  queueObjectId,
  serviceOfQueue,
} from "./queue.ts";
import { createMissingQueues } from "./missing-queues.ts";
import type { QueueRegistry } from "./queue-registry.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";

export interface QueueAdoptionDeps {
  readonly queues: Collection<QueueObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly fleet: Pick<Fleet, "session" | "subscribe">;
  readonly registry: QueueRegistry;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

/** Delay after the connection of a machine, because an engine that has just started is busy. */
const afterStartMs = 5_000;
const retryMs = 15_000;
/**
 * Interval of the check for renamed and dropped databases. Shorter than the full resync, so that each resync checks.
 */
const checkIntervalMs = 9 * 60_000;
/** Minimum interval between checks that refused calls trigger. */
const suspectIntervalMs = 5_000;

interface LastCheck {
  readonly start: string;
  /** Monotonic time. */
  readonly atMs: number;
}

/** The control loop, and a trigger of an immediate check. */
export interface QueueAdoption extends ControlLoop {
  /** Call when a database refused a queue of the service, which may have been deleted there. */
  suspect(serviceId: string): void;
}

/**
 * Compares the queue registries in a service's databases with the stored queues. Once for each start of its machine it
 * adopts queues that only a registry has, such as after a restore, a fork or a rebuild of the control plane. At the
 * start and periodically, queues follow a renamed database, and fail if their database was dropped. Key: service id.
 */
export function createQueueAdoption(deps: QueueAdoptionDeps): QueueAdoption {
  const { queues, services, fleet, registry, begin, clock, newId, log } = deps;
  const missing = createMissingQueues({ queues, registry, commit, clock, log });
  const lastChecks = new Map<string, LastCheck>();
  const suspected = new Set<string>();
  const wakes = new Set<(serviceId: string) => void>();

  function startOf({ object }: Stored<ManagedServiceObject>): string | undefined {
    const { id } = taskTarget(object);
    const session = fleet.session(id);
    return session && `${id} ${session.bootId}`;
  }

  async function reconcile(serviceId: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const service = services.get(serviceId);
    if (service === undefined) {
      lastChecks.delete(serviceId);
      return settled;
    }
    const { spec, status, metadata } = service.object;
    const start = startOf(service);
    const isReady = status.state === "Running" && spec.power === "on" && spec.canary === undefined;
    if (!isReady || metadata.deletionRequestedAt !== undefined || start === undefined) return settled;
    if (engineOf(spec.databaseType)?.hasQueues !== true) return settled;
    const last = lastChecks.get(serviceId);
    const isFirst = last?.start !== start;
    if (!isFirst && !isDue(serviceId, last)) return settled;
    const connectedMs = clock.now() - (fleet.session(taskTarget(service.object).id)?.connectedAt ?? 0);
    if (connectedMs >= 0 && connectedMs < afterStartMs)
      return again(afterStartMs - connectedMs, "the machine has just connected");
    const found = await registry.list(service.object, signal);
    if (found.kind !== "done") {
      log.debug("queues not listed", {
        service: serviceId,
        reason: found.kind === "refused" ? found.message : found.reason,
      });
      return again(retryMs, "the machine could not list its queues");
    }
    suspected.delete(serviceId);
    let isComplete = true;
    // Registries gain queues without the controller only at a start; otherwise a row may belong to a queue in deletion.
    if (isFirst) for (const row of found.value) isComplete = (await compare(service, row, signal)) && isComplete;
    isComplete = (await missing.find(service.object, found.value, signal)) && isComplete;
    if (!isComplete) return again(retryMs, "the machine has not applied all changes");
    lastChecks.set(serviceId, { start, atMs: clock.monotonicMs() });
    return settled;
  }

  function isDue(serviceId: string, { atMs }: LastCheck): boolean {
    if (queues.by(serviceOfQueue, serviceId).length === 0) return false;
    const passedMs = clock.monotonicMs() - atMs;
    return passedMs > (suspected.has(serviceId) ? suspectIntervalMs : checkIntervalMs);
  }

  /** Handles one row; false if it has to be handled again later. */
  async function compare(
    service: Stored<ManagedServiceObject>,
    row: EngineQueue,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { id: serviceId } = service.object.metadata;
    const existing = await queues.getCurrent(queueObjectId(serviceId, row.name), signal);
    const isSame = existing?.object.spec.queueId === row.id && existing.object.spec.databaseName === row.database;
    if (existing === undefined && row.deleted) {
      // There is no stored queue whose reconciler would finish the deletion.
      return row.purged || (await isRemoved(service.object, row, signal));
    } else if (existing === undefined) {
      return adopt(service, row, signal);
    } else if (isSame && row.deleted && existing.object.status.state === "Active") {
      const moved = afterEvent(existing.object, "foundDeleted", clock.now());
      if (moved !== undefined) await commit((unit) => unit.update(queueKind, existing, moved.after), signal);
    } else if (existing.object.spec.queueId !== row.id && !row.deleted) {
      log.warn("queue not adopted: another has its name", {
        service: serviceId,
        queue: row.name,
        database: row.database,
      });
    }
    return true;
  }

  async function isRemoved(service: ManagedServiceObject, { database, id }: EngineQueue, signal: AbortSignal) {
    const removed = await registry.remove(service, { database, id }, signal);
    return removed.kind === "done" && removed.value;
  }

  async function adopt(service: Stored<ManagedServiceObject>, row: EngineQueue, signal: AbortSignal): Promise<boolean> {
    const { id: serviceId, organizationId } = service.object.metadata;
    // The data is a copy of another service, whose queue has the id: agents before the detached copy retained the ids.
    const isCopy = queues.by(queueIdOf, row.id).length > 0;
    const { database: databaseName, name, visibilityTimeoutSeconds, maxAttempts, dlqEnabled } = row;
    const settings = { databaseName, visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
    const queueId = isCopy ? newId() : row.id;
    const queue = adoptedQueue({ serviceId, organizationId, name, queueId, ...settings }, clock.now());
    if (isCopy) {
      const put = await registry.put(service.object, queue, signal, { adopt: true });
      if (put.kind !== "done") return false;
    }
    await commit((unit) => {
      unit.onlyWhile({ key: keyOf(managedServiceKind, serviceId), modRevision: service.modRevision });
      unit.create(queueKind, queue);
    }, signal);
    log.info("queue adopted", { service: serviceId, queue: name, copy: isCopy });
    return true;
  }

  async function commit(fill: (unit: UnitOfWork) => void, signal: AbortSignal): Promise<void> {
    const unit = begin();
    fill(unit);
    await queues.untilRevision(await unit.commit(signal), 1_000);
  }

  return {
    reconciler: { name: "queue-adoption", reconcile },
    *keys() {
      for (const { object } of services.values()) yield object.metadata.id;
    },
    inputs: (id) => {
      const service = services.get(id);
      return service === undefined ? "" : `${service.object.status.state} ${startOf(service) ?? ""}`;
    },
    subscribe(onChange) {
      const watch = services.subscribe(onChange);
      wakes.add(onChange);
      return {
        close() {
          wakes.delete(onChange);
          watch.close();
        },
      };
    },
    suspect(serviceId) {
      suspected.add(serviceId);
      for (const wake of wakes) wake(serviceId);
    },
  };
}
