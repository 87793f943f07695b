import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import type { MachineObject } from "./machine.ts";
import { planRemovals, type RemovalStep } from "./left-snapshots.ts";
import { planSnapshot, type SnapshotStep } from "./machine-snapshot.ts";

/** What the world is like for one machine. */
export interface ObservedMachine {
  /** What the provider has; undefined when it has nothing. */
  readonly facts: MachineFacts | undefined;
  /** For how long an agent's stream has been there; undefined while there is none. */
  readonly connectedMs: number | undefined;
  /** For how long a running machine has had no stream, as far as this controller knows. */
  readonly silentMs: number;
  /** How long ago it died, the last time last, within the last ten minutes. */
  readonly deathsAgoMs: readonly number[];
  /** Did this controller bring it the enrollment that its object has? One that began before may have ended between the two. */
  readonly knowsControllers: boolean;
  readonly now: number;
  /** For how long this controller has been at work. */
  readonly atWorkMs: number;
  /** host:port of every controller that takes agents. */
  readonly controllers: readonly string[];
  /** Of the authority that controllers' certificates are issued by now. */
  readonly caFingerprint: string;
}

/** One thing to do. Each is idempotent. */
export type MachineStep =
  /** Chooses its host. What comes after is planned again, with what is there. */
  | { readonly kind: "place" }
  | { readonly kind: "create" }
  | { readonly kind: "growDisk"; readonly diskBytes: number }
  | { readonly kind: "resize" }
  | SnapshotStep
  | RemovalStep
  /** Acts at the start that follows. */
  | { readonly kind: "replaceImage"; readonly image: string }
  | { readonly kind: "replaceGuestKernel"; readonly guestKernel: string }
  /** Notes which image the provider chose. */
  | { readonly kind: "keepImage"; readonly image: string }
  | { readonly kind: "keepGuestKernel"; readonly guestKernel: string }
  | { readonly kind: "start" }
  /** A running machine gets a new enrollment: what it has is not taken any more. */
  | { readonly kind: "enroll" }
  | { readonly kind: "stop" }
  | { readonly kind: "destroy" }
  | { readonly kind: "forget" };

export interface MachinePlanned {
  readonly steps: readonly MachineStep[];
  /** When to look again although nothing happened; null when only a change matters. */
  readonly lookAgainMs: number | null;
}

/** A stream that is away for so long is not only between two controllers. */
export const silentTooLongMs = 60_000;
/** Longer than an agent takes that a controller told where the others are. */
export const lostAfterMs = 5_000;
/** An agent tells what it holds as the first thing on its stream; after this it has told. */
export const toldWithinMs = 2_000;
/** A controller that comes up sees to machines that are somebody's, and to its first callers, before it makes or starts others. */
const firstForOwnersMs = 5_000;
/** Deaths that are further back do not count. */
export const deathsKeptMs = 600_000;
/** So many deaths, and the machine is not called well any more, though it is started again. */
export const deathsMax = 5;

/** Pure: what to do next so that the machine becomes what was asked for. */
export function planMachine(machine: MachineObject, observed: ObservedMachine): MachinePlanned {
  const { facts } = observed;
  const { steps, lookAgainMs } = planRun(machine, observed);
  const isStaying = machine.metadata.deletionRequestedAt === undefined && machine.spec.hostId !== null;
  if (facts === undefined || !isStaying) return { steps, lookAgainMs };
  // Last: what cannot be removed must not keep the machine from running.
  const removals = planRemovals(machine, facts, observed.now);
  const looks = [lookAgainMs, removals.lookAgainMs].filter((ms) => ms !== null);
  return { steps: [...steps, ...removals.steps], lookAgainMs: looks.length === 0 ? null : Math.min(...looks) };
}

function planRun(machine: MachineObject, observed: ObservedMachine): MachinePlanned {
  const { facts } = observed;
  if (machine.metadata.deletionRequestedAt !== undefined) {
    return only(facts === undefined ? [{ kind: "forget" }] : [{ kind: "destroy" }, { kind: "forget" }]);
  }
  const isRunning = facts?.state === "running";
  if (machine.spec.owner === null && !isRunning && observed.atWorkMs < firstForOwnersMs)
    return { steps: [], lookAgainMs: firstForOwnersMs };
  if (machine.spec.hostId === null) return only([{ kind: "place" }]);
  // A provider shows a machine that is half made by its missing address.
  const make: MachineStep[] = facts === undefined || facts.address === "" ? [{ kind: "create" }] : [];
  if (facts !== undefined && make.length === 0) make.push(...planSnapshot(machine, facts), ...fit(machine, facts));
  if (machine.spec.power === "off") return only(isRunning ? [...make, { kind: "stop" }] : make);
  if (!isRunning) {
    const waitMs = restartDelayMs(observed.deathsAgoMs);
    return waitMs > 0 ? { steps: make, lookAgainMs: waitMs } : only([...make, { kind: "start" }]);
  }
  const { connectedMs } = observed;
  if (connectedMs !== undefined) {
    const isNew = machine.spec.owner === null && connectedMs <= toldWithinMs;
    return isNew ? { steps: make, lookAgainMs: toldWithinMs - connectedMs + 1 } : only(make);
  }
  const isLost = controllersMoved(machine, observed.controllers) || trustsAnother(machine, observed.caFingerprint);
  const waitMs = isLost ? lostAfterMs : silentTooLongMs;
  const isInVain = isLost || !observed.knowsControllers || !hasEnrollment(machine, observed.now);
  if (observed.silentMs >= waitMs && isInVain) make.push({ kind: "enroll" });
  return { steps: make, lookAgainMs: waitMs };
}

/** What was made ahead has the size of nobody in particular. */
function fit({ spec }: MachineObject, facts: MachineFacts): MachineStep[] {
  const { diskBytes, plan, image, state } = facts;
  const steps: MachineStep[] = [];
  if (diskBytes < spec.diskBytes) steps.push({ kind: "growDisk", diskBytes: spec.diskBytes });
  const isOtherSize = plan.vcpu !== spec.vcpu || plan.memoryBytes !== spec.memoryBytes;
  // Nothing is known to be missing of a root that is not told of.
  const { rootBytes = spec.rootBytes } = plan;
  if (isOtherSize || rootBytes < spec.rootBytes) steps.push({ kind: "resize" });
  if (spec.image === "" && image !== "") steps.push({ kind: "keepImage", image });
  // A running machine keeps its image: the service's plan decides when it is turned off for another one.
  const isOther = spec.image !== "" && image !== "" && image !== spec.image;
  // A machine that stays off needs no image: another may be chosen before it starts, and a missing image must not keep
  // it from stopping.
  if (isOther && state === "stopped" && spec.power === "on") steps.push({ kind: "replaceImage", image: spec.image });
  return [...steps, ...fitKernel(spec, facts)];
}

/** As with the image. A machine that tells of none has none of its own, or is half lost. */
function fitKernel(spec: MachineObject["spec"], { guestKernel = "", state }: MachineFacts): MachineStep[] {
  const { guestKernel: wanted = "" } = spec;
  if (guestKernel === "" || guestKernel === wanted) return [];
  if (wanted === "") return [{ kind: "keepGuestKernel", guestKernel }];
  return state === "stopped" && spec.power === "on" ? [{ kind: "replaceGuestKernel", guestKernel: wanted }] : [];
}

/** At once after the first death, then 1 s, 2 s, 4 s, up to a minute after the last one. */
export function restartDelayMs(deathsAgoMs: readonly number[]): number {
  const last = deathsAgoMs.at(-1);
  if (last === undefined || deathsAgoMs.length === 1) return 0;
  const delayMs = Math.min(60_000, 1_000 * 2 ** (deathsAgoMs.length - 2));
  return Math.max(0, delayMs - last);
}

/** None of the controllers that the machine was told of is there any more: it finds nobody until it is told again. */
function controllersMoved({ status }: MachineObject, controllers: readonly string[]): boolean {
  const told = status.enrollment?.controllers;
  if (told === undefined || controllers.length === 0) return false;
  return !told.some((address) => controllers.includes(address));
}

/** It was told to trust an authority that signs no longer: it refuses every controller until it is told again. */
function trustsAnother({ status }: MachineObject, caFingerprint: string): boolean {
  const { enrollment } = status;
  return enrollment?.spentBy === undefined && (enrollment?.caFingerprint ?? caFingerprint) !== caFingerprint;
}

function hasEnrollment(machine: MachineObject, now: number): boolean {
  const { enrollment } = machine.status;
  return enrollment !== null && enrollment.spentBy === undefined && enrollment.expiresAt > now;
}

function only(steps: readonly MachineStep[]): MachinePlanned {
  return { steps, lookAgainMs: null };
}
