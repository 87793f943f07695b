import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { afterEvent, queueKind, type QueueObject, serviceOfQueue } from "./queue.ts";
import { queueEvent } from "./queue-events.ts";
import type { QueueEvent } from "./queue-lifecycle.ts";
import { planQueue } from "./queue-plan.ts";
import type { QueueRegistry, RegistryOutcome } from "./queue-registry.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";

export interface QueueWorkDeps {
  readonly queues: Collection<QueueObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly fleet: Pick<Fleet, "session" | "subscribe">;
  readonly registry: QueueRegistry;
  /** True while automation is paused after a jump of the wall clock. */
  readonly clockJumped: () => boolean;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const retryMs = 2_000;
const purgeIntervalMs = 200;

/** Applies each queue to its database and records the outcome. Key: id of the object. */
export function createQueueWork(deps: QueueWorkDeps): ControlLoop {
  const { queues, services, fleet, registry, begin, clock, log } = deps;

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const queue = await queues.getCurrent(id, signal);
    if (queue === undefined) return settled;
    const { serviceId, databaseName: database, queueId } = queue.object.spec;
    const service = services.get(serviceId)?.object ?? (await services.getCurrent(serviceId, signal))?.object;
    const connected = service !== undefined && fleet.session(taskTarget(service).id) !== undefined;
    const step = planQueue(queue.object, { service, connected, clockJumped: deps.clockJumped() }, clock.now());
    switch (step.kind) {
      case "forget": {
        const unit = begin();
        unit.remove(queueKind, queue);
        await queues.untilRevision(await unit.commit(signal), 1_000);
        return settled;
      }
      case "begin":
        return move(queue, "begun", null, signal);
      case "fail":
        return move(queue, "stuck", step.message, signal);
      case "put":
        if (service === undefined) return settled;
        return recordPut(queue, await registry.put(service, queue.object, signal), signal);
      case "remove": {
        if (service === undefined) return settled;
        const outcome = await registry.remove(service, { database, id: queueId }, signal);
        if (outcome.kind !== "done") return retryUnlessRefused(queue, outcome, signal);
        return outcome.value ? remove(queue, signal) : again(purgeIntervalMs, "messages remain");
      }
      case "wait":
        return step.delayMs === undefined ? settled : again(Math.min(step.delayMs, 60_000), step.reason);
      case "settled":
        return settled;
    }
  }

  function retryUnlessRefused(
    queue: Stored<QueueObject>,
    outcome: Exclude<RegistryOutcome<unknown>, { kind: "done" }>,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> | ReconcileOutcome {
    if (outcome.kind === "refused") return move(queue, "refused", outcome.message, signal);
    log.debug("queue not applied yet", { queue: queue.object.metadata.id, reason: outcome.reason });
    return again(retryMs, "the machine did not respond");
  }

  async function recordPut(
    queue: Stored<QueueObject>,
    outcome: RegistryOutcome<true>,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    if (outcome.kind !== "done") return retryUnlessRefused(queue, outcome, signal);
    const { object } = queue;
    const { generation } = object.metadata;
    const updated = { ...object, status: { ...object.status, observedGeneration: generation } };
    if (object.status.state === "Provisioning") return move({ ...queue, object: updated }, "registered", null, signal);
    const unit = begin();
    unit.update(queueKind, queue, updated);
    await queues.untilRevision(await unit.commit(signal), 1_000);
    return settled;
  }

  async function move(
    queue: Stored<QueueObject>,
    event: QueueEvent,
    message: string | null,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const moved = afterEvent(queue.object, event, clock.now(), message);
    if (moved === undefined) return settled;
    const unit = begin();
    unit.update(queueKind, queue, moved.after);
    const announcement = queueEvent(moved.effect, moved.after);
    if (announcement !== undefined) unit.event(announcement);
    await queues.untilRevision(await unit.commit(signal), 1_000);
    logMove(queue.object, event, moved.after);
    return again(0, "the next step");
  }

  async function remove(queue: Stored<QueueObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const deleted = afterEvent(queue.object, "purged", clock.now());
    const unit = begin();
    unit.remove(queueKind, queue);
    const announcement = deleted && queueEvent(deleted.effect, deleted.after);
    if (announcement !== undefined) unit.event(announcement);
    await queues.untilRevision(await unit.commit(signal), 1_000);
    logMove(queue.object, "purged", undefined);
    return settled;
  }

  function logMove({ metadata, spec, status }: QueueObject, event: QueueEvent, after: QueueObject | undefined): void {
    const to = after?.status.state ?? "deleted";
    log.info("queue changed state", { service: spec.serviceId, queue: metadata.name, from: status.state, event, to });
  }

  const wakeOf = (onChange: (id: string) => void) => (serviceId: string) => {
    for (const { object } of queues.by(serviceOfQueue, serviceId)) onChange(object.metadata.id);
  };

  return {
    reconciler: { name: "queue", reconcile },
    *keys() {
      for (const { object } of queues.values()) yield object.metadata.id;
    },
    inputs: (id) => {
      const queue = queues.get(id);
      const service = services.get(queue?.object.spec.serviceId ?? "");
      const boot = service === undefined ? "" : (fleet.session(taskTarget(service.object).id)?.bootId ?? "");
      return `${queue?.modRevision ?? 0} ${service?.modRevision ?? 0} ${boot}`;
    },
    subscribe(onChange) {
      const wake = wakeOf(onChange);
      const watches = [
        queues.subscribe(onChange),
        services.subscribe(wake),
        fleet.subscribe((machineId) => {
          for (const { object } of queues.values()) {
            if (object.status.state === "Active" || object.status.state === "Failed") continue;
            const service = services.get(object.spec.serviceId)?.object;
            if (service !== undefined && taskTarget(service).id === machineId) onChange(object.metadata.id);
          }
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
