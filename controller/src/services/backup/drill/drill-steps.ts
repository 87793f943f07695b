import { next } from "@holdfast/common/machine.ts";
import { completed, failed, type OperationObject, progressed, warned } from "#operation/operation.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { DrillEvent } from "./drill-lifecycle.ts";
import { drillLifecycle } from "./drill-lifecycle.ts";
import type { DrillStep } from "./drill-plan.ts";
import type { DrillObject, DrillStatus } from "./drill.ts";

/** The objects that a step writes. */
export interface AdvancedDrill {
  readonly drill: DrillObject;
  readonly operation: OperationObject | undefined;
  readonly events: readonly NewEvent[];
}

/** Drill, operation and events after a step; the same objects if it changes nothing. */
export function advanceDrill(
  drill: DrillObject,
  operation: OperationObject | undefined,
  step: DrillStep,
  now: number,
  newMachineId: string,
): AdvancedDrill {
  const { status, spec } = drill;
  switch (step.kind) {
    case "begin": {
      const began = { machineId: newMachineId, startedAt: now, mark: "begun", progressedAt: now };
      return transitioned(drill, operation, "begun", began, now);
    }
    case "follow": {
      if (step.mark === status.mark) return { drill, operation, events: [] };
      const after = withStatus(drill, { mark: step.mark, progressedAt: now }, now);
      return { drill: after, operation: withStep(operation, step.step, after, now), events: [] };
    }
    case "examined": {
      const examined = status.examined + 1;
      const change = { examined, checks: [...status.checks, ...step.checks], mark: "examined", progressedAt: now };
      if (examined === spec.restores.length) return transitioned(drill, operation, "passed", change, now);
      const after = withStatus(drill, change, now);
      return { drill: after, operation: withStep(operation, "Restore", after, now), events: [] };
    }
    case "fail": {
      const { code, message, checks = [], damagedObject } = step;
      const change = { error: { code, message }, checks: [...status.checks, ...checks] };
      const damage = damagedObject === undefined ? {} : { damagedObject };
      return transitioned(drill, operation, "failed", { ...change, ...damage }, now);
    }
    case "wait":
      return { drill, operation: withStep(operation, step.step, drill, now), events: [] };
    default:
      return { drill, operation, events: [] };
  }
}

function transitioned(
  drill: DrillObject,
  operation: OperationObject | undefined,
  event: DrillEvent,
  change: Partial<DrillStatus>,
  now: number,
): AdvancedDrill {
  const row = next(drillLifecycle, drill.status.state, event);
  if (row === undefined) return { drill, operation, events: [] };
  const [, , state, effect] = row;
  const finishedAt = state === "running" ? null : now;
  const after = withStatus(drill, { ...change, state, finishedAt }, now);
  return {
    drill: after,
    operation: ended(operation, after, now) ?? withStep(operation, "WaitForMachine", after, now),
    events: effect === "announceFailed" ? [failedEvent(after)] : [],
  };
}

function ended(operation: OperationObject | undefined, { status }: DrillObject, now: number) {
  if (operation === undefined || operation.status.finishedAt !== null) return operation;
  const found = status.checks.filter(({ name }) => name === "databases").map(({ detail }) => detail);
  if (status.state === "completed") return completed(warned(operation, found), now);
  if (status.state === "failed" && status.error !== null) return failed(operation, status.error, now);
  return undefined;
}

/** The operation at this step. It waits without a deadline, because the drill has its own time limit. */
function withStep(operation: OperationObject | undefined, step: string, { spec, status }: DrillObject, now: number) {
  if (operation === undefined || operation.status.finishedAt !== null) return operation;
  const progressPct = Math.floor((100 * status.examined) / spec.restores.length);
  const mark = `${step} ${status.examined} ${status.mark}`;
  if (operation.status.mark === mark) return operation;
  // Steps of the second restore have a number, such as `Restore 2`.
  const label = status.examined === 0 ? step : `${step} ${status.examined + 1}`;
  return progressed(operation, { step: label, progressPct, mark, waits: true }, now);
}

function withStatus(drill: DrillObject, change: Partial<DrillStatus>, now: number): DrillObject {
  return { ...drill, metadata: { ...drill.metadata, updatedAt: now }, status: { ...drill.status, ...change } };
}

function failedEvent({ metadata, spec, status }: DrillObject): NewEvent {
  return {
    type: "backup.drill_failed",
    organizationId: metadata.organizationId,
    objectKind: "managed-service",
    objectId: spec.serviceId,
    data: {
      service_id: spec.serviceId,
      drill_id: metadata.id,
      backup_id: spec.restores[0]?.backupId ?? "",
      code: status.error?.code ?? "",
      error_message: status.error?.message ?? "",
    },
  };
}
