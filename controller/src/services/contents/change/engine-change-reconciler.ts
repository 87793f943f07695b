import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskInput } from "#fleet/task/task.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import {
  failed,
  findOperation,
  isFinished,
  operationKind,
  type OperationObject,
  progressed,
} from "#operation/operation.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { engineChangeKind, type EngineChangeObject, serviceOfChange } from "./engine-change.ts";
import { endChange, type EndDeps, type EndStep, hasUsersOnEachMember } from "./engine-change-end.ts";
import { remainingMs, type ObservedChange, planEngineChange, planSettled } from "./engine-change-plan.ts";
import {
  engineOutcomeOf,
  type SettledOutcome,
  settledOutcomeOf,
  settleInputOf,
  taskIdOf,
  taskInputOf,
} from "./engine-change-task.ts";
import { standbysOf } from "../../service/member/primary-replicas/primary.ts";
import { taskTarget } from "../../service/member/member-roles.ts";

export interface EngineChangeDeps extends EndDeps {
  readonly changes: Collection<EngineChangeObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Fleet;
  readonly log: Log;
}

/** Age from which a change in progress is recorded as running. Most changes end sooner, which saves a write. */
const runningAfterMs = 1_000;
const recheckMs = 15_000;
/** Timeout of a query of the engine's state, and the delay before the next query. */
const settleTimeoutMs = 10_000;
const settleRetryDelayMs = 2_000;

/**
 * Changes of users and databases inside engines: submits each as a task to the primary's agent, repeats it until the
 * operation's deadline, and records the outcome. Key: change id.
 *
 * Users and databases live in the engine; the store has only passwords of users that the platform created. The API
 * (`engine-changes.ts`) writes a change and an operation; `engine-change-plan.ts` decides the next step,
 * `engine-change-task.ts` translates changes to tasks and results to outcomes, and `engine-change-end.ts` ends a change
 * in one transaction with the stored user.
 */
export function createEngineChangeWork(deps: EngineChangeDeps): ControlLoop {
  const { changes, services, operations, fleet } = deps;

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const change = changes.get(id);
    if (change === undefined) return settled;
    const { serviceId, operationId } = change.object.spec;
    const { isGivenUp } = change.object.status;
    const operation = await findOperation(operations, operationId, signal);
    if (operation === undefined && !isGivenUp) throw new Error(`the change ${id} has no operation`);
    const service = services.get(serviceId) ?? (await services.getCurrent(serviceId, signal));
    const now = deps.clock.now();
    const observed = observe(change.object, operation?.object, service?.object);
    const end = async (step: EndStep) => {
      const records = { change, operation, service, attempt: observed.task };
      const revision = await endChange(step, records, deps, signal);
      await changes.untilRevision(revision, 1_000);
      logEnd(change.object, step);
      return settled;
    };
    const step = planEngineChange(change.object, observed, now);
    switch (step.kind) {
      case "submit":
        if (service === undefined) return settled;
        // During a canary of an image nothing may be submitted, and memory may be stale: the store is read.
        if ((await services.getCurrent(serviceId, signal))?.object.spec.canary !== undefined)
          return reportStep(operation, "WaitForEngine", signal);
        await submit(change, service.object, step.deadlineMs, signal);
        return again(runningAfterMs, "submitted");
      case "tryAgain":
        return tryAgain(change, step, signal);
      case "settle": {
        if (service === undefined) return settled;
        const next = planSettled(await settle(change.object, service.object, signal));
        if (next.kind === "fail") return end(next);
        if (next.kind === "applied" && (await hasEachMember(change.object, service.object, operation?.object, signal)))
          return end(next);
        return again(isGivenUp ? recheckMs : settleRetryDelayMs, "the engine has not reported its state");
      }
      case "giveUp":
        if (operation === undefined) return settled;
        return giveUp(change, operation, step, signal);
      case "wait":
        return reportStep(operation, step.step, signal);
      case "applied":
        if (service !== undefined && !(await hasEachMember(change.object, service.object, operation?.object, signal)))
          return again(settleRetryDelayMs, "a replica lacks the change");
        return end(step);
      default:
        return end(step);
    }
  }

  /** False while a connected replica lacks a change that is not replicated. */
  async function hasEachMember(
    change: EngineChangeObject,
    service: ManagedServiceObject,
    operation: OperationObject | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    // After the deadline replicas get the users with their next instance spec, as do disconnected replicas.
    if (!hasUsersOnEachMember(service) || remainingMs(operation, deps.clock.now()) <= 0) return true;
    const request = requestOf(service, taskInputOf(change), settleTimeoutMs);
    const connectedStandbys = standbysOf(service).filter(({ id }) => fleet.session(id) !== undefined);
    const outcomes = await Promise.all(
      connectedStandbys.map(({ id }) =>
        fleet.run(id, request, settleTimeoutMs, signal).then(
          (result) => engineOutcomeOf(change, result).kind,
          () => "unknown" as const,
        ),
      ),
    );
    signal.throwIfAborted();
    return outcomes.every((kind) => kind === "applied" || kind === "refused");
  }

  function observe(
    change: EngineChangeObject,
    operation: OperationObject | undefined,
    service: ManagedServiceObject | undefined,
  ): ObservedChange {
    const connected = service !== undefined && fleet.session(taskTarget(service).id) !== undefined;
    const earlierChanges = changes
      .by(serviceOfChange, change.spec.serviceId)
      .filter(({ object: { spec, status } }) => spec.operationId < change.spec.operationId && !status.isGivenUp).length;
    return { operation, service, connected, earlierChanges, task: fleet.task(taskIdOf(change)) };
  }

  /** Submits the task, only if the change is unchanged in the store: a change that was given up is never submitted. */
  async function submit(
    { object: change, modRevision }: Stored<EngineChangeObject>,
    service: ManagedServiceObject,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const onlyWhile = { key: keyOf(engineChangeKind, change.metadata.id), modRevision };
    const request = { ...requestOf(service, taskInputOf(change), deadlineMs), onlyWhile };
    await fleet.submit(taskTarget(service).id, taskIdOf(change), request, signal);
  }

  async function settle(
    change: EngineChangeObject,
    service: ManagedServiceObject,
    signal: AbortSignal,
  ): Promise<SettledOutcome> {
    const request = requestOf(service, settleInputOf(change), settleTimeoutMs);
    try {
      return settledOutcomeOf(await fleet.run(taskTarget(service).id, request, settleTimeoutMs, signal));
    } catch (error) {
      signal.throwIfAborted();
      deps.log.debug("change not settled yet", { operation: change.spec.operationId, error: String(error) });
      return { kind: "noResponse" };
    }
  }

  function requestOf(service: ManagedServiceObject, input: TaskInput, deadlineMs: number) {
    const { metadata, spec, status } = service;
    const { instanceGeneration: generation } = spec;
    return { ownerId: metadata.id, generation, term: status.term, lane: "query", input, deadlineMs } as const;
  }

  /**
   * Starts another attempt after a delay. The number is written after it, so that a new owner waits at most once more.
   */
  async function tryAgain(
    change: Stored<EngineChangeObject>,
    { afterMs, isUncertain }: { afterMs: number; isUncertain: boolean },
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { object } = change;
    const waitedMs = deps.clock.now() - object.metadata.updatedAt;
    // Negative: the clock was set back.
    if (waitedMs >= 0 && waitedMs < afterMs) return again(afterMs - waitedMs, "try again");
    const unit = deps.begin();
    unit.update(engineChangeKind, change, {
      ...object,
      metadata: { ...object.metadata, updatedAt: deps.clock.now() },
      status: { attempt: object.status.attempt + 1, isUncertain, isGivenUp: false },
    });
    await changes.untilRevision(await unit.commit(signal), 1_000);
    return again(0, "new attempt");
  }

  async function giveUp(
    change: Stored<EngineChangeObject>,
    operation: Stored<OperationObject>,
    error: { code: string; message: string },
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { object } = change;
    const { code, message } = error;
    const unit = deps.begin();
    unit.update(operationKind, operation, failed(operation.object, { code, message }, deps.clock.now()));
    unit.update(engineChangeKind, change, { ...object, status: { ...object.status, isGivenUp: true } });
    await changes.untilRevision(await unit.commit(signal), 1_000);
    deps.log.warn("engine change given up", { service: object.spec.serviceId, operation: object.spec.operationId });
    return again(recheckMs, "given up");
  }

  async function reportStep(
    operation: Stored<OperationObject> | undefined,
    step: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    if (operation === undefined || isFinished(operation.object)) return again(recheckMs, step);
    const now = deps.clock.now();
    const untilRunningMs = runningAfterMs - (now - operation.object.metadata.createdAt);
    if (untilRunningMs > 0) return again(untilRunningMs, step);
    // Waiting is not progress, so the deadline does not move.
    const after = progressed(operation.object, { step: null, obstacle: step, progressPct: 0, mark: "" }, now);
    if (operation.object.status.step !== after.status.step) {
      const unit = deps.begin();
      unit.update(operationKind, operation, after);
      await operations.untilRevision(await unit.commit(signal), 1_000);
    }
    const leftMs = remainingMs(operation.object, now);
    return again(leftMs > 0 ? Math.min(recheckMs, leftMs) : runningAfterMs, step);
  }

  function logEnd({ metadata, spec }: EngineChangeObject, step: EndStep): void {
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
        for (const { object } of changes.by(serviceOfChange, serviceId)) onChange(object.metadata.id);
      };
      const watches = [
        changes.subscribe((id, before) => {
          onChange(id);
          // When a change ends, the next change of the service may start.
          if (before !== undefined && changes.get(id) === undefined) wakeOf(before.spec.serviceId);
        }),
        services.subscribe(wakeOf),
        fleet.subscribe((machineId) => {
          for (const { object } of changes.values()) {
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
