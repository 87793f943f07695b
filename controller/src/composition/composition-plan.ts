import type { ResourceObservation } from "#resource-kind/resource-kind.ts";
import {
  afterEvent,
  type CompositionObject,
  type Failure,
  leavingMembers,
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
  progressIntervalMs,
  type Observe,
  type Observed,
  progress,
  waiting,
} from "./composition-step.ts";
import { planUpgrade } from "./upgrade-plan.ts";

/** Maximum number of resources of a composition that are created or changed concurrently. */
const inFlightMax = 10;
/** Time for which a Deleted project remains visible. */
const deletedRetentionMs = 30 * 86_400_000;

/** The next step of a composition, by the observation of its members. */
export function planComposition(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { status, spec } = composition;
  const removed = status.members.filter((member) => isRemoved(member, observe(member)));
  if (removed.length > 0) {
    const members = status.members.filter((member) => !removed.includes(member));
    return { kind: "record", after: withStatus(composition, { members }, now), effect: "none" };
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
      const remainingMs = spec.kind === "project" ? status.since + deletedRetentionMs - now : 0;
      return remainingMs <= 0 ? { kind: "forget" } : { kind: "wait", forMs: remainingMs };
    }
    case "Running": {
      const record = recordStep(composition, observe, now);
      if (record !== undefined) return record;
      if (spec.kind === "pipeline") return announcement(composition, observe, now);
      return markStep(composition, now) ?? wireStep(composition, observe, now) ?? waiting;
    }
    // The deployment may have failed before it marked its resources as owned.
    case "Failed":
      return recordStep(composition, observe, now) ?? markStep(composition, now) ?? waiting;
  }
}

/** True for a member without a resource that is being removed or is not managed any more. */
function isRemoved({ step, isInDescriptor }: Member, { phase }: ResourceObservation): boolean {
  return phase === "absent" && (step === "leaving" || (!isInDescriptor && step !== "planned"));
}

/** The next member to remove: one on which no other member that is being removed depends. */
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
  return { kind: "record", after: row.after, effect: row.effect, ...(deployment && { deployment }) };
}

function planDeployment(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { status } = composition;
  const managed = status.members.filter(({ isInDescriptor, step }) => isInDescriptor && step !== "leaving");
  const failure = failureOf(composition, managed, observe, now);
  if (failure !== undefined) {
    const step = afterFailure(composition, failure, now);
    // A pipeline continues with the other members.
    if (step.kind === "record") return step;
  }

  const converged = managed.filter((member) => hasConverged(member, observe(member)));
  if (converged.length > 0) {
    const members = status.members.map((member) => (converged.includes(member) ? convergedMember(member) : member));
    return { kind: "record", after: withStatus(composition, { members }, now), effect: "none" };
  }
  const mark = markStep(composition, now);
  if (mark !== undefined) return mark;

  const isUp = (name: string) => {
    const needed = managed.find((member) => member.name === name);
    return needed === undefined || (needed.step === "ready" && observe(needed).phase === "running");
  };
  if (status.state === "Wiring") {
    const wire = wireStep(composition, observe, now);
    if (wire !== undefined) return wire;
    // A consumer may start again with the outputs that it got.
    if (!managed.every(({ name }) => isUp(name))) return progress(composition, managed, observe, now);
    return moved(composition, "wired", now, { state: "Completed" }, { hasRun: true, detail: null });
  }

  const isInProgress = ({ step, change }: Member) => step === "made" || change?.step === "begun";
  if (managed.filter(isInProgress).length < inFlightMax) {
    // A member of the same name may be in removal; until then its resource occupies the name.
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

/** Passes outputs to a consumer that is attached to them, and again after an output changed. */
function wireStep(composition: CompositionObject, observe: Observe, now: number): CompositionStep | undefined {
  const ready = composition.status.members.filter(({ step, isInDescriptor }) => step === "ready" && isInDescriptor);
  for (const consumer of ready) {
    if (consumer.attachments === undefined) continue;
    const attached = consumer.attachments.map(({ name }) => ready.find((member) => member.name === name));
    const versions = attached.map((member) => {
      const observed = member && observe(member);
      return observed?.phase === "running" ? observed.outputsVersion : undefined;
    });
    // If an output is unavailable now, a later run passes it.
    if (composition.status.state === "Running" && versions.includes(undefined)) continue;
    const wiredTo = versions.join(" ");
    if (consumer.wiredTo !== wiredTo)
      return { kind: "wire", member: consumer, after: withMember(composition, consumer.id, { wiredTo }, now) };
  }
  return undefined;
}

/** Records a direct change by users, so that it is not reported as drift, and the cost includes it. */
function recordStep(composition: CompositionObject, observe: Observe, now: number): CompositionStep | undefined {
  for (const member of composition.status.members) {
    const { followed } = observe(member);
    if (followed === undefined) continue;
    const { sealedSpec, addedCents } = followed;
    const after = withMember(composition, member.id, { sealedSpec }, now);
    const spec = { ...after.spec, monthlyCents: after.spec.monthlyCents + addedCents };
    return { kind: "record", after: { ...after, spec }, effect: "none" };
  }
  return undefined;
}

function markStep(composition: CompositionObject, now: number): CompositionStep | undefined {
  const stale = composition.status.members.find(
    ({ step, isInDescriptor, isMarked }) => (step === "made" || step === "ready") && isInDescriptor !== isMarked,
  );
  if (stale === undefined) return undefined;
  const after = withMember(composition, stale.id, { isMarked: stale.isInDescriptor }, now);
  return { kind: "mark", member: stale, after };
}

function hasConverged({ step, change }: Member, observed: Observed): boolean {
  if (observed.phase !== "running") return false;
  return step === "made" || (change?.step === "begun" && observed.isChangeApplied);
}

function convergedMember(member: Member): Member {
  if (member.step === "made") return { ...member, step: "ready" };
  return { ...unchanged(member), sealedSpec: member.change?.sealedTarget ?? member.sealedSpec };
}

/** The failure of the deployment; undefined while it can succeed. */
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
  const isLate = spec.kind !== "pipeline" && status.deadline !== null && status.deadline < now;
  return isLate ? { cause: "failed", reason: timeoutMessage(managed, observe) } : undefined;
}

function timeoutMessage(managed: readonly Member[], observe: Observe): string {
  const late = managed.filter((member) => member.step !== "ready" || observe(member).phase !== "running");
  const words = late.map(
    (member) => `${member.name}${observe(member).detail === null ? "" : ` (${observe(member).detail})`}`,
  );
  return `No progress for 10 minutes; waiting for ${words.slice(0, 5).join(", ") || "nothing"}.`;
}

/** The step after a failed deployment. A pipeline retries instead. */
export function afterFailure(composition: CompositionObject, failure: Failure, now: number): CompositionStep {
  const { status, spec } = composition;
  if (spec.kind === "pipeline") {
    const detail = failure.reason;
    if (status.detail === detail) return { kind: "wait", forMs: progressIntervalMs };
    return { kind: "record", after: withStatus(composition, { detail }, now), effect: "none" };
  }
  const { reason, cause } = failure;
  if (!status.hasRun)
    return moved(composition, "failedFirst", now, undefined, {
      failure,
      detail: reason,
      members: leavingMembers(status.members),
    });
  const members = status.members.flatMap((member): Member[] => {
    if (member.step === "planned") return [];
    const restored = unchanged(member);
    return [member.step === "made" ? { ...restored, step: "leaving" } : restored];
  });
  const state = cause === "aborted" ? "Aborted" : "Failed";
  return moved(composition, "failedLater", now, { state, error: reason }, { detail: reason, members });
}

/** Announces that a pipeline became healthy or degraded. */
function announcement(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { members, announcedHealthy } = composition.status;
  const unhealthy = members.find((member) => member.step !== "leaving" && !isMemberHealthy(observe(member)));
  const isHealthy = unhealthy === undefined;
  const detail =
    unhealthy === undefined ? null : `${unhealthy.name}: ${observe(unhealthy).detail ?? "it is not healthy"}`;
  // A pipeline is not announced as degraded before it was announced as healthy.
  if (isHealthy === (announcedHealthy ?? false)) return waiting;
  return {
    kind: "record",
    after: withStatus(composition, { announcedHealthy: isHealthy, detail }, now),
    effect: isHealthy ? "announceRunning" : "announceDegraded",
  };
}

/** True if the resource runs and is healthy. */
export function isMemberHealthy({ phase, healthy }: ResourceObservation): boolean {
  return phase === "running" && healthy;
}
