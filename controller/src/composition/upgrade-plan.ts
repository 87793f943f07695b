import { afterEvent, type CompositionObject, type Member, unchanged, withMember, withStatus } from "./composition.ts";
import {
  beginChange,
  type CompositionStep,
  faultOf,
  type RecordStep,
  type Observe,
  type Observed,
  progress,
  waiting,
} from "./composition-step.ts";

/**
 * The next step of an upgrade. Members change one after the other in the order of dependencies. If a step fails, its
 * resource gets the previous spec; earlier steps remain, and later ones are not started.
 */
export function planUpgrade(composition: CompositionObject, observe: Observe, now: number): CompositionStep {
  const { status } = composition;
  const current = status.members.find(({ change }) => change !== undefined);
  if (current?.change === undefined) return completed(composition, now);
  const { change } = current;
  const observed = observe(current);
  const isLate = status.deadline !== null && status.deadline < now;
  switch (change.step) {
    case "wanted": {
      if (observed.phase === "running") return beginChange(composition, current, change, now);
      const fault = faultOf(current, observed) ?? (isLate ? late(current) : undefined);
      return fault === undefined ? progress(composition, [current], observe, now) : endUpgrade(composition, fault, now);
    }
    case "begun": {
      const fault = faultOf(current, observed) ?? (isLate ? late(current) : undefined);
      if (fault !== undefined) return failed(composition, current, fault, observed, now);
      if (observed.phase !== "running") return progress(composition, [current], observe, now);
      const done = { ...unchanged(current), sealedSpec: change.sealedTarget };
      const members = status.members.map((member) => (member === current ? done : member));
      return { kind: "record", after: withStatus(composition, { members }, now), effect: "none" };
    }
    case "failed":
      return {
        kind: "undo",
        member: current,
        after: withMember(composition, current.id, { change: { ...change, step: "undoing" } }, now),
      };
    case "undoing": {
      const isOver = observed.phase !== "changing" && observed.phase !== "creating";
      if (!isOver && !isLate) return progress(composition, [current], observe, now);
      return endUpgrade(composition, change.error ?? "", now);
    }
  }
}

function late({ name }: Member): string {
  return `${name}: no progress for 10 minutes.`;
}

function completed(composition: CompositionObject, now: number): CompositionStep {
  const { upgrade } = composition.status;
  const row = afterEvent(composition, "upgraded", now, { detail: null });
  if (row === undefined) return waiting;
  const { upgrade: _, ...status } = row.after.status;
  const after = { ...row.after, spec: { ...row.after.spec, ...upgrade }, status };
  return { kind: "record", after, effect: row.effect, deployment: { state: "Completed" } };
}

/** The step after the failed change of a resource: request the previous spec, unless the resource still has it. */
function failed(
  composition: CompositionObject,
  member: Member,
  error: string,
  observed: Observed,
  now: number,
): CompositionStep {
  const { change } = member;
  const exists = observed.phase !== "absent" && observed.phase !== "deleting";
  if (change === undefined || !exists || (observed.phase === "running" && !observed.isChangeApplied))
    return endUpgrade(composition, error, now);
  const after = withMember(composition, member.id, { change: { ...change, step: "failed", error } }, now);
  return { kind: "record", after, effect: "none" };
}

/** Ends the upgrade as failed; completed steps remain. */
export function endUpgrade(composition: CompositionObject, error: string, now: number): RecordStep {
  const members = composition.status.members.map(unchanged);
  const row = afterEvent(composition, "upgradeFailed", now, { detail: error, members });
  if (row === undefined) throw new Error("an upgrade ends only in state Upgrading");
  const { upgrade: _, ...status } = row.after.status;
  return {
    kind: "record",
    after: { ...row.after, status },
    effect: row.effect,
    deployment: { state: "Failed", error },
  };
}
