import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "../fleet/fleet.ts";
import { type ManagedServiceObject, primaryOf } from "../managed-service/managed-service.ts";
import { findOperation } from "../operation/find-operation.ts";
import { type OperationObject, progressed } from "../operation/operation.ts";
import { again, type Outcome, settled } from "../runtime/reconciler.ts";
import type { Reconciled } from "../runtime/runner.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import type { EngineChangeObject } from "./engine-change.ts";
import { type EndDeps, endEngineChange } from "./engine-change-end.ts";
import { type EngineChangeStep, planEngineChange } from "./engine-change-plan.ts";
import { taskIdOf, taskInputOf } from "./engine-change-task.ts";

export interface EngineChangeDeps extends EndDeps {
  readonly changes: Collection<EngineChangeObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Fleet;
  readonly log: Log;
}

/** What ends sooner never shows as running: that saves a write. */
const startedAfterMs = 1_000;
const lookAgainMs = 15_000;

/** Brings one change to its engine and writes down what became of it. Key: change id. */
export function createEngineChangeWork(deps: EngineChangeDeps): Reconciled {
  const { changes, services, operations, fleet } = deps;

  async function reconcile(id: string, signal: AbortSignal): Promise<Outcome> {
    const change = changes.get(id);
    if (change === undefined) return settled;
    const { serviceId, operationId } = change.object.spec;
    const operation = await findOperation(operations, operationId, signal);
    if (operation === undefined) throw new Error(`the change ${id} has no operation`);
    const service = services.get(serviceId) ?? (await services.fresh(serviceId, signal));
    const now = deps.clock.now();
    const step = planEngineChange(change.object, observe(change.object, operation.object, service?.object), now);
    switch (step.kind) {
      case "submit":
        if (service === undefined) return settled;
        await submit(change.object, service.object, step.deadlineMs, signal);
        return again(startedAfterMs, "given to the machine");
      case "tryAgain":
        return tryAgain(change, step.afterMs, signal);
      case "wait":
        return tellStep(operation, step.step, signal);
      default:
        await changes.reached(await endEngineChange(step, change, operation, service, deps, signal), 1_000);
        logEnd(change.object, step);
        return settled;
    }
  }

  function observe(
    change: EngineChangeObject,
    operation: OperationObject,
    service: ManagedServiceObject | undefined,
  ): Parameters<typeof planEngineChange>[1] {
    const connected = service !== undefined && fleet.session(primaryOf(service).id) !== undefined;
    const before = [...changes.values()].filter(
      ({ object: { spec } }) => spec.serviceId === change.spec.serviceId && spec.operationId < change.spec.operationId,
    ).length;
    return { operation, service, connected, before, task: fleet.task(taskIdOf(change)) };
  }

  async function submit(
    change: EngineChangeObject,
    service: ManagedServiceObject,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const request = {
      ownerId: service.metadata.id,
      generation: service.spec.instanceGeneration,
      term: service.status.term,
      lane: "query",
      input: taskInputOf(change),
      deadlineMs,
    } as const;
    await fleet.submit(primaryOf(service).id, taskIdOf(change), request, signal);
  }

  /** The number of the attempt is written after the pause, so that a new leader waits at most once more. */
  async function tryAgain(change: Stored<EngineChangeObject>, afterMs: number, signal: AbortSignal): Promise<Outcome> {
    const { object } = change;
    const waitedMs = deps.clock.now() - object.metadata.updatedAt;
    if (waitedMs < afterMs) return again(afterMs - waitedMs, "try again");
    const unit = deps.begin();
    unit.update("engine-change", change, {
      ...object,
      metadata: { ...object.metadata, updatedAt: deps.clock.now() },
      status: { attempt: object.status.attempt + 1 },
    });
    await changes.reached(await unit.commit(signal), 1_000);
    return again(0, "another attempt");
  }

  async function tellStep(operation: Stored<OperationObject>, step: string, signal: AbortSignal): Promise<Outcome> {
    const now = deps.clock.now();
    const youngMs = startedAfterMs - (now - operation.object.metadata.createdAt);
    if (youngMs > 0) return again(youngMs, step);
    if (operation.object.status.step !== step) {
      const unit = deps.begin();
      // Waiting is no progress: the deadline stays where it is.
      unit.update("operation", operation, progressed(operation.object, { step, progressPct: 0, mark: "" }, now));
      await operations.reached(await unit.commit(signal), 1_000);
    }
    return again(lookAgainMs, step);
  }

  function logEnd({ metadata, spec }: EngineChangeObject, step: EngineChangeStep): void {
    const { serviceId: service, operationId: operation, change } = spec;
    const reason = step.kind === "fail" ? { code: step.code } : {};
    deps.log.info("engine change ended", {
      service,
      operation,
      type: change.type,
      name: metadata.name,
      end: step.kind,
      ...reason,
    });
  }

  return {
    reconciler: { name: "engine-change", reconcile },
    *keys() {
      for (const { object } of changes.values()) yield object.metadata.id;
    },
    subscribe(onChange) {
      const wakeOf = (serviceId: string) => {
        for (const { object } of changes.values())
          if (object.spec.serviceId === serviceId) onChange(object.metadata.id);
      };
      const watches = [
        changes.subscribe((id) => {
          onChange(id);
          // One that is over lets another one of its service go.
          if (changes.get(id) === undefined) wakeOf(id.slice(0, id.indexOf(".")));
        }),
        services.subscribe(wakeOf),
        fleet.subscribe((machineId) => {
          for (const { object } of changes.values()) {
            const service = services.get(object.spec.serviceId)?.object;
            if (service !== undefined && primaryOf(service).id === machineId) onChange(object.metadata.id);
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
