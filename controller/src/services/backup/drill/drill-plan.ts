import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { type DrillCheck, type DrillObject, isOver, originOf } from "./drill.ts";

/** What the world is like for one drill, read fresh at each reconcile. */
export interface ObservedDrill {
  readonly machine: MachineObject | undefined;
  /** Its agent is there. */
  readonly connected: boolean;
  /** What the agent told since the machine's start. */
  readonly instance: InstanceObservation | undefined;
  /** The service is there, and is to stay. */
  readonly isWanted: boolean;
  /** Another one may run. */
  readonly hasRoom: boolean;
}

export type DrillStep =
  | { readonly kind: "wait"; readonly step: string }
  /** The machine is written down with the drill that it is of. */
  | { readonly kind: "begin" }
  | { readonly kind: "deliver" }
  | { readonly kind: "follow"; readonly step: string; readonly mark: string }
  | { readonly kind: "examined"; readonly checks: readonly DrillCheck[] }
  | { readonly kind: "fail"; readonly code: string; readonly message: string; readonly checks?: readonly DrillCheck[] }
  | { readonly kind: "deleteMachine" }
  /** It has ended and nothing is left of it. */
  | { readonly kind: "rest" };

const minuteMs = 60_000;
/** Without progress for so long it is given up. */
const silentForMs = 30 * minuteMs;
/** An engine that cannot start over restored data is given so long. */
const engineFailedForMs = minuteMs;

/** Pure: what to do next. */
export function planDrill(drill: DrillObject, observed: ObservedDrill, now: number): DrillStep {
  const { machine } = observed;
  if (isOver(drill)) {
    if (machine === undefined) return { kind: "rest" };
    return machine.metadata.deletionRequestedAt === undefined ? { kind: "deleteMachine" } : { kind: "rest" };
  }
  if (!observed.isWanted) return fail("service_deleted", "The service was deleted.");
  if (now - drill.status.progressedAt > silentForMs) {
    const why = machine?.status.reason ?? "";
    return fail("timed_out", `Nothing moved for ${silentForMs / minuteMs} minutes${why === "" ? "." : `: ${why}`}`);
  }
  if (drill.status.state === "pending")
    return observed.hasRoom ? { kind: "begin" } : { kind: "wait", step: "WaitForTurn" };
  return planRunning(drill, observed, now);
}

function planRunning(drill: DrillObject, { machine, connected, instance }: ObservedDrill, now: number): DrillStep {
  const origin = originOf(drill);
  if (machine === undefined) return fail("machine_lost", "The drill's machine is gone.");
  if (machine.status.state === "failed") return fail("machine_failed", machine.status.reason);
  if (origin === undefined || !connected) return { kind: "wait", step: "WaitForMachine" };
  if (Number(instance?.generation ?? 0n) < generationOf(drill)) return { kind: "deliver" };
  const restore = instance?.restore?.restoreId === origin.restoreId ? instance.restore : undefined;
  if (instance === undefined || restore === undefined) return { kind: "wait", step: "WaitForMachine" };
  const of: DrillCheck["of"] = origin.targetTime === null ? "backup" : "target";
  const code = restore.errorCode;
  if (restore.state === "failed" && code !== "" && code !== "retrying") return fail(code, restore.reason);
  if (restore.state !== "finished") {
    const mark = `${restore.state} ${restore.restoredBytes} ${restore.restoredObjects} ${restore.position}`;
    return { kind: "follow", step: restore.state === "examining" ? "Examine" : "Restore", mark };
  }
  if (instance.state === "failed" && now - drill.status.progressedAt > engineFailedForMs)
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

/** Of the settings of its machine: another one with each restore. */
export function generationOf({ status }: DrillObject): number {
  return status.examined + 1;
}

function fail(code: string, message: string, checks?: readonly DrillCheck[]): DrillStep {
  return { kind: "fail", code, message, ...(checks && { checks }) };
}
