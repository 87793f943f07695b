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
  /** Time for which the running machine has had no stream, as observed by this controller. */
  readonly silentMs: number;
  /** Ages of the machine's crashes within the last ten minutes, the most recent last. A crash: it ended by itself. */
  readonly crashesAgoMs: readonly number[];
  /** Time of the last crash, in milliseconds since 1970; absent before the first one. */
  readonly crashedAt?: number | undefined;
  /**
   * True if this controller delivered the stored enrollment to the machine. A controller that crashed between the write
   * and the delivery leaves an enrollment that the machine never got.
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

/** A step of the plan. Each step is idempotent. */
export type MachineStep =
  /** Chooses the machine's host. The next plan continues with that host's facts. */
  | { readonly kind: "place" }
  | { readonly kind: "create" }
  | { readonly kind: "growDisk"; readonly diskBytes: number }
  | { readonly kind: "resize" }
  | SnapshotStep
  | RemovalStep
  /** Takes effect at the next start. */
  | { readonly kind: "replaceImage"; readonly image: string }
  | { readonly kind: "replaceGuestKernel"; readonly guestKernel: string }
  /** Records the image that the provider chose in the spec. */
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

/**
 * Time without a stream after which a machine is silent: an agent that is only dialing another controller is faster.
 */
export const silenceTimeoutMs = 60_000;
/** Time without a stream that is longer than the redial of an agent that a controller redirected. */
export const redialTimeoutMs = 5_000;
/** Time after the start of a stream within which its agent reports its instance, in its first frame. */
export const firstReportTimeoutMs = 2_000;
/**
 * Delay after a controller's start before machines of the warm pool are created or started, so that owned machines are
 * first.
 */
const poolStartDelayMs = 5_000;
/** Maximum age of a crash that counts. */
export const crashWindowMs = 600_000;
/** Number of crashes from which on the machine's state is failed until its agent connects; it is still restarted. */
const crashesMax = 5;

/** True if the machine crashes repeatedly: its state is failed while its agent is not connected. */
function isCrashLooping({ crashesAgoMs, connectedMs }: Pick<ObservedMachine, "crashesAgoMs" | "connectedMs">): boolean {
  return crashesAgoMs.length >= crashesMax && connectedMs === undefined;
}

/** The event for the state that the provider reports; undefined while the machine waits for a restart. */
export function foundEvent(
  { spec }: Pick<MachineObject, "spec">,
  state: MachineFacts["state"],
  observed: Pick<ObservedMachine, "crashesAgoMs" | "connectedMs">,
): MachineEvent | undefined {
  if (isCrashLooping(observed)) return "failed";
  if (state === "running")
    return spec.owner === null && (observed.connectedMs ?? 0) > firstReportTimeoutMs ? "foundWaiting" : "foundRunning";
  return observed.crashesAgoMs.length > 0 && spec.power === "on" ? undefined : "foundStopped";
}

/** The next steps that converge the machine to its spec. */
export function planMachine(machine: MachineObject, observed: ObservedMachine): MachineStepPlan {
  const { facts } = observed;
  const { steps, recheckInMs } = planRun(machine, observed);
  const isPlaced = machine.metadata.deletionRequestedAt === undefined && machine.spec.hostId !== null;
  if (facts === undefined || !isPlaced) return { steps, recheckInMs };
  // Removals are the last steps, because a failed removal must not prevent the machine's start.
  const removals = planSnapshotRemovals(machine, facts, observed.now);
  const rechecks = [recheckInMs, removals.recheckInMs].filter((ms) => ms !== null);
  return { steps: [...steps, ...removals.steps], recheckInMs: rechecks.length === 0 ? null : Math.min(...rechecks) };
}

function planRun(machine: MachineObject, observed: ObservedMachine): MachineStepPlan {
  const { facts } = observed;
  if (machine.metadata.deletionRequestedAt !== undefined) {
    return withoutRecheck(
      facts === undefined ? [{ kind: "deleteObject" }] : [{ kind: "destroy" }, { kind: "deleteObject" }],
    );
  }
  const isRunning = facts?.state === "running";
  if (machine.spec.owner === null && !isRunning && observed.uptimeMs < poolStartDelayMs)
    return { steps: [], recheckInMs: poolStartDelayMs };
  if (machine.spec.hostId === null) return withoutRecheck([{ kind: "place" }]);
  // A machine without an address is only partly created.
  const steps: MachineStep[] = facts === undefined || facts.address === "" ? [{ kind: "create" }] : [];
  if (facts !== undefined && steps.length === 0)
    steps.push(...planSnapshot(machine, facts), ...stepsToFit(machine, facts));
  if (machine.spec.power === "off") return withoutRecheck(isRunning ? [...steps, { kind: "stop" }] : steps);
  if (!isRunning) {
    const waitMs = restartDelayMs(observed.crashesAgoMs);
    return waitMs > 0 ? { steps, recheckInMs: waitMs } : withoutRecheck([...steps, { kind: "start" }]);
  }
  const { connectedMs } = observed;
  if (connectedMs !== undefined) {
    const isNew = machine.spec.owner === null && connectedMs <= firstReportTimeoutMs;
    return isNew ? { steps, recheckInMs: firstReportTimeoutMs - connectedMs + 1 } : withoutRecheck(steps);
  }
  const isLost = controllersMoved(machine, observed.controllers) || trustsOldAuthority(machine, observed.caFingerprint);
  const waitMs = isLost ? redialTimeoutMs : silenceTimeoutMs;
  const needsEnrollment = isLost || !observed.enrollmentDelivered || !hasEnrollment(machine, observed.now);
  if (observed.silentMs >= waitMs && needsEnrollment) steps.push({ kind: "enroll" });
  return { steps, recheckInMs: waitMs };
}

/**
 * Steps toward the size, image and kernel of the spec. A claimed machine of the warm pool still has the smallest size.
 */
function stepsToFit({ spec }: MachineObject, facts: MachineFacts): MachineStep[] {
  const { diskBytes, plan, image, state } = facts;
  const steps: MachineStep[] = [];
  if (diskBytes < spec.diskBytes) steps.push({ kind: "growDisk", diskBytes: spec.diskBytes });
  const isOtherSize = plan.vcpu !== spec.vcpu || plan.memoryBytes !== spec.memoryBytes;
  // A provider that does not limit the root reports no root size, so nothing has to grow.
  const { rootBytes = spec.rootBytes } = plan;
  if (isOtherSize || rootBytes < spec.rootBytes) steps.push({ kind: "resize" });
  if (spec.image === "" && image !== "") steps.push({ kind: "recordImage", image });
  // A running machine's image is not replaced: the service's plan decides when to stop it for that.
  const needsImage = spec.image !== "" && image !== "" && image !== spec.image;
  // A machine that remains off needs no image: another one may be chosen before its start, and a missing image must not
  // prevent its stop.
  if (needsImage && state === "stopped" && spec.power === "on") steps.push({ kind: "replaceImage", image: spec.image });
  return [...steps, ...kernelSteps(spec, facts)];
}

/** Steps toward the kernel of the spec. A machine that reports no kernel is a container, or partly lost. */
function kernelSteps(spec: MachineObject["spec"], { guestKernel = "", state }: MachineFacts): MachineStep[] {
  const { guestKernel: desired = "" } = spec;
  if (guestKernel === "" || guestKernel === desired) return [];
  if (desired === "") return [{ kind: "recordGuestKernel", guestKernel }];
  return state === "stopped" && spec.power === "on" ? [{ kind: "replaceGuestKernel", guestKernel: desired }] : [];
}

/**
 * Back-off of restarts: none after the first crash, then 1 s, 2 s, 4 s, up to a minute, counted from the last crash.
 */
export function restartDelayMs(crashesAgoMs: readonly number[]): number {
  const last = crashesAgoMs.at(-1);
  if (last === undefined || crashesAgoMs.length === 1) return 0;
  const delayMs = Math.min(60_000, 1_000 * 2 ** (crashesAgoMs.length - 2));
  return Math.max(0, delayMs - last);
}

/** True if no controller of the machine's enrollment exists any more, so that the agent cannot connect by itself. */
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

function withoutRecheck(steps: readonly MachineStep[]): MachineStepPlan {
  return { steps, recheckInMs: null };
}
