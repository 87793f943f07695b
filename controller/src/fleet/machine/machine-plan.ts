import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import type { MachineObject } from "./machine.ts";
import type { MachineEvent } from "./machine-lifecycle.ts";
import { planSnapshotRemovals, type RemovalStep } from "./snapshot-removal.ts";
import { planSnapshot, type SnapshotStep } from "./machine-snapshot.ts";

/** The observed state of one machine, as input of its plan. */
export interface ObservedMachine {
  /** The provider's facts; undefined if it has no such machine. */
  readonly facts: MachineFacts | undefined;
  /** Age of the agent's stream; undefined without one. */
  readonly connectedMs: number | undefined;
  /** Time that the running machine has had no stream, as observed by this controller. */
  readonly silentMs: number;
  /** Ages of its deaths within the last ten minutes, the most recent last. */
  readonly deathsAgoMs: readonly number[];
  /** Time of the last death, in milliseconds since 1970; absent before the first one. */
  readonly diedAt?: number | undefined;
  /**
   * True if this controller delivered the stored enrollment to the machine. A controller that crashed between the write
   * and the delivery left an enrollment that the machine never got.
   */
  readonly enrollmentDelivered: boolean;
  readonly now: number;
  /** Time since this controller's reconciler started. */
  readonly uptimeMs: number;
  /** host:port of every controller that serves agents. */
  readonly controllers: readonly string[];
  /** Fingerprint of the authority that issues controllers' certificates. */
  readonly caFingerprint: string;
}

/** One step of the plan. Each is idempotent. */
export type MachineStep =
  /** Chooses its host. The next plan continues with that host's facts. */
  | { readonly kind: "place" }
  | { readonly kind: "create" }
  | { readonly kind: "growDisk"; readonly diskBytes: number }
  | { readonly kind: "resize" }
  | SnapshotStep
  | RemovalStep
  /** Takes effect at the next start. */
  | { readonly kind: "replaceImage"; readonly image: string }
  | { readonly kind: "replaceGuestKernel"; readonly guestKernel: string }
  /** Records in the spec which image the provider chose. */
  | { readonly kind: "recordImage"; readonly image: string }
  | { readonly kind: "recordGuestKernel"; readonly guestKernel: string }
  | { readonly kind: "start" }
  /** Gives a running machine a new enrollment, because its controllers or its authority no longer exist. */
  | { readonly kind: "enroll" }
  | { readonly kind: "stop" }
  | { readonly kind: "destroy" }
  | { readonly kind: "deleteObject" };

export interface MachineStepPlan {
  readonly steps: readonly MachineStep[];
  /** Time until the next plan if nothing changes; null: only a change matters. */
  readonly recheckInMs: number | null;
}

/** A machine without a stream for this long is not just redialing another controller. */
export const silenceTimeoutMs = 60_000;
/** Longer than the redial of an agent that a controller redirected. */
export const lostAfterMs = 5_000;
/** Time after the start of a stream by which its agent has reported its instance, which is its first frame. */
export const reportedWithinMs = 2_000;
/**
 * Delay after a controller's start before machines of the warm pool are created or started: owned machines come first.
 */
const poolStartDelayMs = 5_000;
/** Older deaths do not count. */
export const deathWindowMs = 600_000;
/** Number of deaths from which on the machine's state is failed until its agent connects; it is still restarted. */
const deathsMax = 5;

/** True if the machine ends again and again: its state is failed while its agent is not connected. */
function diesOften({ deathsAgoMs, connectedMs }: Pick<ObservedMachine, "deathsAgoMs" | "connectedMs">): boolean {
  return deathsAgoMs.length >= deathsMax && connectedMs === undefined;
}

/** The event of a machine as the provider reports it; undefined while it waits for a restart. */
export function foundEvent(
  { spec }: Pick<MachineObject, "spec">,
  state: MachineFacts["state"],
  observed: Pick<ObservedMachine, "deathsAgoMs" | "connectedMs">,
): MachineEvent | undefined {
  if (diesOften(observed)) return "failed";
  if (state === "running")
    return spec.owner === null && (observed.connectedMs ?? 0) > reportedWithinMs ? "foundWaiting" : "foundRunning";
  return observed.deathsAgoMs.length > 0 && spec.power === "on" ? undefined : "foundStopped";
}

/** The next steps that bring the machine to its spec. */
export function planMachine(machine: MachineObject, observed: ObservedMachine): MachineStepPlan {
  const { facts } = observed;
  const { steps, recheckInMs } = planRun(machine, observed);
  const isStaying = machine.metadata.deletionRequestedAt === undefined && machine.spec.hostId !== null;
  if (facts === undefined || !isStaying) return { steps, recheckInMs };
  // Removals come last, because a failed removal must not prevent the machine's start.
  const removals = planSnapshotRemovals(machine, facts, observed.now);
  const rechecks = [recheckInMs, removals.recheckInMs].filter((ms) => ms !== null);
  return { steps: [...steps, ...removals.steps], recheckInMs: rechecks.length === 0 ? null : Math.min(...rechecks) };
}

function planRun(machine: MachineObject, observed: ObservedMachine): MachineStepPlan {
  const { facts } = observed;
  if (machine.metadata.deletionRequestedAt !== undefined) {
    return only(facts === undefined ? [{ kind: "deleteObject" }] : [{ kind: "destroy" }, { kind: "deleteObject" }]);
  }
  const isRunning = facts?.state === "running";
  if (machine.spec.owner === null && !isRunning && observed.uptimeMs < poolStartDelayMs)
    return { steps: [], recheckInMs: poolStartDelayMs };
  if (machine.spec.hostId === null) return only([{ kind: "place" }]);
  // A partly created machine has no address.
  const steps: MachineStep[] = facts === undefined || facts.address === "" ? [{ kind: "create" }] : [];
  if (facts !== undefined && steps.length === 0)
    steps.push(...planSnapshot(machine, facts), ...stepsToFit(machine, facts));
  if (machine.spec.power === "off") return only(isRunning ? [...steps, { kind: "stop" }] : steps);
  if (!isRunning) {
    const waitMs = restartDelayMs(observed.deathsAgoMs);
    return waitMs > 0 ? { steps, recheckInMs: waitMs } : only([...steps, { kind: "start" }]);
  }
  const { connectedMs } = observed;
  if (connectedMs !== undefined) {
    const isNew = machine.spec.owner === null && connectedMs <= reportedWithinMs;
    return isNew ? { steps, recheckInMs: reportedWithinMs - connectedMs + 1 } : only(steps);
  }
  const isLost = controllersMoved(machine, observed.controllers) || trustsOldAuthority(machine, observed.caFingerprint);
  const waitMs = isLost ? lostAfterMs : silenceTimeoutMs;
  const needsEnrollment = isLost || !observed.enrollmentDelivered || !hasEnrollment(machine, observed.now);
  if (observed.silentMs >= waitMs && needsEnrollment) steps.push({ kind: "enroll" });
  return { steps, recheckInMs: waitMs };
}

/**
 * Steps towards the size, image and kernel of the spec. A claimed machine of the warm pool has the smallest size at
 * first.
 */
function stepsToFit({ spec }: MachineObject, facts: MachineFacts): MachineStep[] {
  const { diskBytes, plan, image, state } = facts;
  const steps: MachineStep[] = [];
  if (diskBytes < spec.diskBytes) steps.push({ kind: "growDisk", diskBytes: spec.diskBytes });
  const isOtherSize = plan.vcpu !== spec.vcpu || plan.memoryBytes !== spec.memoryBytes;
  // A provider without a root size reports none, and nothing is missing then.
  const { rootBytes = spec.rootBytes } = plan;
  if (isOtherSize || rootBytes < spec.rootBytes) steps.push({ kind: "resize" });
  if (spec.image === "" && image !== "") steps.push({ kind: "recordImage", image });
  // A running machine's image is not replaced: the service's plan decides when to stop it for that.
  const isOther = spec.image !== "" && image !== "" && image !== spec.image;
  // A machine that stays off needs no image: another one may be chosen before its start, and a missing image must not
  // prevent its stop.
  if (isOther && state === "stopped" && spec.power === "on") steps.push({ kind: "replaceImage", image: spec.image });
  return [...steps, ...kernelSteps(spec, facts)];
}

/** The same for the kernel. A machine that reports none is a container, or partly lost. */
function kernelSteps(spec: MachineObject["spec"], { guestKernel = "", state }: MachineFacts): MachineStep[] {
  const { guestKernel: desired = "" } = spec;
  if (guestKernel === "" || guestKernel === desired) return [];
  if (desired === "") return [{ kind: "recordGuestKernel", guestKernel }];
  return state === "stopped" && spec.power === "on" ? [{ kind: "replaceGuestKernel", guestKernel: desired }] : [];
}

/**
 * Back-off of restarts: none after the first death, then 1 s, 2 s, 4 s, up to a minute, counted from the last death.
 */
export function restartDelayMs(deathsAgoMs: readonly number[]): number {
  const last = deathsAgoMs.at(-1);
  if (last === undefined || deathsAgoMs.length === 1) return 0;
  const delayMs = Math.min(60_000, 1_000 * 2 ** (deathsAgoMs.length - 2));
  return Math.max(0, delayMs - last);
}

/** True if none of the controllers of the machine's enrollment exists any more, so that it cannot connect by itself. */
function controllersMoved({ status }: MachineObject, controllers: readonly string[]): boolean {
  const delivered = status.enrollment?.controllers;
  if (delivered === undefined || controllers.length === 0) return false;
  return !delivered.some((address) => controllers.includes(address));
}

/**
 * True if the machine's unspent enrollment names an authority that no longer signs, so that it refuses every
 * controller.
 */
function trustsOldAuthority({ status }: MachineObject, caFingerprint: string): boolean {
  const { enrollment } = status;
  return enrollment?.spentBy === undefined && (enrollment?.caFingerprint ?? caFingerprint) !== caFingerprint;
}

function hasEnrollment(machine: MachineObject, now: number): boolean {
  const { enrollment } = machine.status;
  return enrollment !== null && enrollment.spentBy === undefined && enrollment.expiresAt > now;
}

function only(steps: readonly MachineStep[]): MachineStepPlan {
  return { steps, recheckInMs: null };
}
