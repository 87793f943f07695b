import type { Observation } from "#resource-kind/resource-kind.ts";
import {
  afterEvent,
  type CompositionObject,
  type Failure,
  leaversOf,
  type Member,
  unchanged,
  withMember,
  withStatus,
} from "./composition.ts";
import {
  beginChange,
  type CompositionStep,
  type DeploymentChange,
  faultOf,
  markEveryMs,
  type Observe,
  type Observed,
  progress,
  waiting,
} from "./composition-step.ts";
import { planUpgrade } from "./upgrade-plan.ts";

/** Resources of one composition that are made or changed at once. */
const inFlightMax = 10;
/** A Deleted project is shown for so long. */
const deletedShownMs = 30 * 86_400_000;

/** Pure: the next step of a composition, by what is observed of its members. */
export function planComposition(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { status, spec } = composition;
  const gone = status.members.filter((member) => isGone(member, observe(member)));
  if (gone.length > 0) {
    const members = status.members.filter((member) => !gone.includes(member));
    return { kind: "note", after: withStatus(composition, { members }, now), effect: "none" };
  }
  const removal = nextRemoval(status.members, observe);
  if (removal !== undefined) return { kind: "remove", member: removal, isOrderly: status.state === "Deleting" };
  const isClearing = status.members.some(({ step }) => step === "leaving");
  switch (status.state) {
    case "Pending":
      return moved(composition, "begun", now, { state: "Applying" });
    case "Provisioning":
    case "Wiring":
      return planDeployment(composition, observe, now);
    case "Upgrading":
      return planUpgrade(composition, observe, now);
    case "RollingBack": {
      if (isClearing) return waiting;
      const { cause, reason } = status.failure ?? { cause: "failed", reason: "" };
      return moved(composition, "cleared", now, { state: cause === "aborted" ? "Aborted" : "Failed", error: reason });
    }
    case "Deleting":
      if (isClearing) return waiting;
      return moved(composition, "cleared", now);
    case "Deleted": {
      const leftMs = spec.face === "project" ? status.since + deletedShownMs - now : 0;
      return leftMs <= 0 ? { kind: "forget" } : { kind: "wait", forMs: leftMs };
    }
    case "Running":
      if (spec.face === "pipeline") return announcement(composition, observe, now);
      return markStep(composition, now) ?? wireStep(composition, observe, now) ?? waiting;
    // Marks that the deployment did not come to.
    case "Failed":
      return markStep(composition, now) ?? waiting;
  }
}

/** A member that is to go, or that is nobody's concern any more, and is not there. */
function isGone({ step, isManaged }: Member, { phase }: Observation): boolean {
  return phase === "absent" && (step === "leaving" || (!isManaged && step !== "planned"));
}

/** The next member to be removed: no other that is to go needs it. */
function nextRemoval(members: readonly Member[], observe: Observe): Member | undefined {
  const leaving = members.filter(({ step }) => step === "leaving");
  return leaving.find((member) => {
    const isNeeded = leaving.some((other) => other !== member && other.needs.includes(member.name));
    return !isNeeded && observe(member).phase !== "deleting";
  });
}

function moved(
  composition: CompositionObject,
  event: Parameters<typeof afterEvent>[1],
  now: number,
  deployment?: DeploymentChange,
  change: Parameters<typeof afterEvent>[3] = {},
): CompositionStep {
  const row = afterEvent(composition, event, now, change);
  if (row === undefined) return waiting;
  return { kind: "note", after: row.after, effect: row.effect, ...(deployment && { deployment }) };
}

function planDeployment(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { status } = composition;
  const managed = status.members.filter(({ isManaged, step }) => isManaged && step !== "leaving");
  const failure = failureOf(composition, managed, observe, now);
  if (failure !== undefined) {
    const step = afterFailure(composition, failure, now);
    // A pipeline tries on with what it has.
    if (step.kind === "note") return step;
  }

  const arrived = managed.filter((member) => hasArrived(member, observe(member)));
  if (arrived.length > 0) {
    const members = status.members.map((member) => (arrived.includes(member) ? arrivedMember(member) : member));
    return { kind: "note", after: withStatus(composition, { members }, now), effect: "none" };
  }
  const mark = markStep(composition, now);
  if (mark !== undefined) return mark;

  if (status.state === "Wiring") {
    const wire = wireStep(composition, observe, now);
    return wire ?? moved(composition, "wired", now, { state: "Completed" }, { hasRun: true, detail: null });
  }

  const isUp = (name: string) => {
    const needed = managed.find((member) => member.name === name);
    return needed === undefined || (needed.step === "ready" && observe(needed).phase === "running");
  };
  const isOpen = ({ step, change }: Member) => step === "made" || change?.step === "begun";
  if (managed.filter(isOpen).length < inFlightMax) {
    // One of the same name may still be leaving, and has the resource's name.
    const isNameFree = ({ name, id }: Member) =>
      !status.members.some((other) => other.name === name && other.id !== id);
    const next = managed.find(
      (member) =>
        (member.step === "planned" && isNameFree(member) && member.needs.every(isUp)) ||
        (member.change?.step === "wanted" && member.needs.every(isUp) && observe(member).phase === "running"),
    );
    if (next?.step === "planned")
      return {
        kind: "create",
        member: next,
        after: withMember(composition, next.id, { step: "made", isMarked: true }, now),
      };
    if (next?.change !== undefined) return beginChange(composition, next, next.change, now);
  }
  if (managed.every((member) => member.change === undefined && member.step === "ready" && isUp(member.name)))
    return moved(composition, "allRunning", now);
  return progress(composition, managed, observe, now);
}

/** Tells a consumer of what it is attached to, and again once one of those is reached otherwise. */
function wireStep(composition: CompositionObject, observe: Observe, now: number): CompositionStep | undefined {
  const ready = composition.status.members.filter(({ step, isManaged }) => step === "ready" && isManaged);
  for (const consumer of ready) {
    if (consumer.attachments === undefined) continue;
    const attached = consumer.attachments.map(({ name }) => ready.find((member) => member.name === name));
    const versions = attached.map((member) => {
      const observed = member && observe(member);
      return observed?.phase === "running" ? observed.outputsVersion : undefined;
    });
    // One that cannot be reached now will be told of once it can.
    if (composition.status.state === "Running" && versions.includes(undefined)) continue;
    const wiredTo = versions.join(" ");
    if (consumer.wiredTo !== wiredTo)
      return { kind: "wire", member: consumer, after: withMember(composition, consumer.id, { wiredTo }, now) };
  }
  return undefined;
}

function markStep(composition: CompositionObject, now: number): CompositionStep | undefined {
  const stale = composition.status.members.find(
    ({ step, isManaged, isMarked }) => (step === "made" || step === "ready") && isManaged !== isMarked,
  );
  if (stale === undefined) return undefined;
  const after = withMember(composition, stale.id, { isMarked: stale.isManaged }, now);
  return { kind: "mark", member: stale, after };
}

function hasArrived({ step, change }: Member, observed: Observed): boolean {
  if (observed.phase !== "running") return false;
  return step === "made" || (change?.step === "begun" && observed.hasTaken);
}

function arrivedMember(member: Member): Member {
  if (member.step === "made") return { ...member, step: "ready" };
  return { ...unchanged(member), sealedSpec: member.change?.sealedTarget ?? member.sealedSpec };
}

/** Why the deployment cannot come about; undefined while it can. */
function failureOf(
  { status, spec }: CompositionObject,
  managed: readonly Member[],
  observe: Observe,
  now: number,
): Failure | undefined {
  if (status.isAborted === true) return { cause: "aborted", reason: "The deployment was aborted." };
  for (const member of managed) {
    if (member.step === "planned") continue;
    const observed = observe(member);
    const fault = faultOf(member, observed);
    if (fault !== undefined) return { cause: "failed", reason: fault };
  }
  const isLate = spec.face !== "pipeline" && status.deadline !== null && status.deadline < now;
  return isLate ? { cause: "failed", reason: lateWords(managed, observe) } : undefined;
}

function lateWords(managed: readonly Member[], observe: Observe): string {
  const late = managed.filter((member) => member.step !== "ready" || observe(member).phase !== "running");
  const words = late.map(
    (member) => `${member.name}${observe(member).detail === null ? "" : ` (${observe(member).detail})`}`,
  );
  return `No progress for 10 minutes; it waits for ${words.slice(0, 5).join(", ") || "nothing"}.`;
}

/** Pure: the deployment does not come about. A pipeline tries on. */
export function afterFailure(composition: CompositionObject, failure: Failure, now: number): CompositionStep {
  const { status, spec } = composition;
  if (spec.face === "pipeline") {
    const detail = failure.reason;
    if (status.detail === detail) return { kind: "wait", forMs: markEveryMs };
    return { kind: "note", after: withStatus(composition, { detail }, now), effect: "none" };
  }
  const { reason, cause } = failure;
  if (!status.hasRun)
    return moved(composition, "failedFirst", now, undefined, {
      failure,
      detail: reason,
      members: leaversOf(status.members),
    });
  const members = status.members.flatMap((member): Member[] => {
    if (member.step === "planned") return [];
    const kept = unchanged(member);
    return [member.step === "made" ? { ...kept, step: "leaving" } : kept];
  });
  const state = cause === "aborted" ? "Aborted" : "Failed";
  return moved(composition, "failedLater", now, { state, error: reason }, { detail: reason, members });
}

/** Tells that a pipeline became healthy or is so no more. */
function announcement(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { members, announcedHealthy } = composition.status;
  const ill = members.find((member) => member.step !== "leaving" && !isWell(observe(member)));
  const isHealthy = ill === undefined;
  const detail = ill === undefined ? null : `${ill.name}: ${observe(ill).detail ?? "it is not healthy"}`;
  // The first news is that all of them are healthy.
  if (isHealthy === (announcedHealthy ?? false)) return waiting;
  return {
    kind: "note",
    after: withStatus(composition, { announcedHealthy: isHealthy, detail }, now),
    effect: isHealthy ? "announceRunning" : "announceDegraded",
  };
}

/** Pure. */
export function isWell({ phase, healthy }: Observation): boolean {
  return phase === "running" && healthy;
}
