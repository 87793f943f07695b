import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { restoreFailure } from "../../service/restore-failure.ts";
import { hasRequestedSize } from "../../scaling/size-plan.ts";
import type { ReplayMemory } from "../restore/replay-memory.ts";
import { type DrillCheck, type DrillObject, isFinished, originOf } from "./drill.ts";

/** Observed state of one drill, read at each reconcile. */
export interface ObservedDrill {
  readonly machine: MachineObject | undefined;
  /** True if the machine's agent is connected. */
  readonly connected: boolean;
  /** The agent's last observation since the machine started. */
  readonly instance: InstanceObservation | undefined;
  /** True if the service exists and is not being deleted. */
  readonly serviceExists: boolean;
  /** True if fewer drills run than the limit of the installation. */
  readonly hasCapacity: boolean;
  /** Memory that the machine needs for the current restore; absent while its own memory suffices. */
  readonly replayMemory?: ReplayMemory;
}

export type DrillStep =
  | { readonly kind: "wait"; readonly step: string }
  /** Start the drill: its machine is created in the same transaction. */
  | { readonly kind: "begin" }
  | { readonly kind: "deliver" }
  /** Give the machine more memory, in the transaction that changes the drill. */
  | { readonly kind: "raiseMemory"; readonly memoryBytes: number }
  | { readonly kind: "follow"; readonly step: string; readonly mark: string }
  | { readonly kind: "examined"; readonly checks: readonly DrillCheck[] }
  | {
      readonly kind: "fail";
      readonly code: string;
      readonly message: string;
      readonly checks?: readonly DrillCheck[];
      readonly damagedObject?: string;
    }
  | { readonly kind: "deleteMachine" }
  /** Nothing to do: the drill has finished and its machine is deleted. */
  | { readonly kind: "settled" };

const minuteMs = 60_000;
/** A drill without progress for this long fails. */
const stalledAfterMs = 30 * minuteMs;
/** Time that an engine has to recover if it fails to start on restored data. */
const engineFailureGraceMs = minuteMs;

/** The next step of a drill. */
export function planDrill(drill: DrillObject, observed: ObservedDrill, now: number): DrillStep {
  const { machine } = observed;
  if (isFinished(drill)) {
    if (machine === undefined) return { kind: "settled" };
    return machine.metadata.deletionRequestedAt === undefined ? { kind: "deleteMachine" } : { kind: "settled" };
  }
  if (!observed.serviceExists) return fail("service_deleted", "The service was deleted.");
  if (now - drill.status.progressedAt > stalledAfterMs) {
    const reason = machine?.status.reason ?? "";
    return fail(
      "timed_out",
      `No progress for ${stalledAfterMs / minuteMs} minutes${reason === "" ? "." : `: ${reason}`}`,
    );
  }
  if (drill.status.state === "pending")
    return observed.hasCapacity ? { kind: "begin" } : { kind: "wait", step: "WaitForTurn" };
  return planRunning(drill, observed, now);
}

function planRunning(drill: DrillObject, observed: ObservedDrill, now: number): DrillStep {
  const { machine, connected, instance, replayMemory } = observed;
  const origin = originOf(drill);
  if (machine === undefined) return fail("machine_lost", "The drill's machine was lost.");
  if (machine.status.state === "failed") return fail("machine_failed", machine.status.reason);
  if (origin === undefined || !connected) return { kind: "wait", step: "WaitForMachine" };
  if (Number(instance?.generation ?? 0n) < generationOf(drill)) return { kind: "deliver" };
  const restore = instance?.restore?.restoreId === origin.restoreId ? instance.restore : undefined;
  if (instance === undefined || restore === undefined) return { kind: "wait", step: "WaitForMachine" };
  const of: DrillCheck["of"] = origin.targetTime === null ? "backup" : "target";
  const code = restore.errorCode;
  if (replayMemory !== undefined && replayMemory.refused === undefined) {
    const { bytes: memoryBytes } = replayMemory;
    if (machine.spec.memoryBytes < memoryBytes) return { kind: "raiseMemory", memoryBytes };
    return hasRequestedSize(machine) ? { kind: "deliver" } : { kind: "wait", step: "WaitForMachine" };
  }
  if (restore.state === "failed" && code !== "" && code !== "retrying") {
    const { damagedObject } = restore;
    return {
      kind: "fail",
      code,
      message: restoreFailure(restore, replayMemory?.refused),
      ...(damagedObject !== "" && { damagedObject }),
    };
  }
  if (restore.state !== "finished") {
    const mark = `${restore.state} ${restore.restoredBytes} ${restore.restoredObjects} ${restore.position}`;
    return { kind: "follow", step: restore.state === "examining" ? "Examine" : "Restore", mark };
  }
  if (instance.state === "failed" && now - drill.status.progressedAt > engineFailureGraceMs)
    return fail("engine_failed", instance.reason, [{ name: "restored", of, passed: false, detail: instance.reason }]);
  if (instance.state !== "running") return { kind: "follow", step: "StartEngine", mark: "finished" };
  const checks: readonly DrillCheck[] = [
    { name: "restored", of, passed: true, detail: "The engine runs over the data." },
    ...restore.findings.map(({ name, passed, detail }) => ({ name, of, passed, detail })),
  ];
  const wrong = checks.find(({ passed }) => !passed);
  if (wrong !== undefined) return fail("check_failed", `${wrong.name} of the ${of}: ${wrong.detail}`, checks);
  return { kind: "examined", checks };
}

/** Generation of the machine's instance spec: one per restore. */
export function generationOf({ status }: DrillObject): number {
  return status.examined + 1;
}

function fail(code: string, message: string, checks?: readonly DrillCheck[]): DrillStep {
  return { kind: "fail", code, message, ...(checks && { checks }) };
}
