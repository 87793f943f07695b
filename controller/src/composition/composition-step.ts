import type { Observation } from "#resource-kind/resource-kind.ts";
import {
  type CompositionObject,
  type Member,
  type MemberChange,
  stuckAfterMs,
  withMember,
  withStatus,
} from "./composition.ts";
import type { CompositionEffect } from "./composition-lifecycle.ts";

/** What becomes of the record of the deployment. */
export interface DeploymentChange {
  readonly state: "Applying" | "Completed" | "Failed" | "Aborted";
  readonly error?: string;
}

/** What to do next; `after` is committed in the same transaction as what is done to the resource. */
export type CompositionStep =
  | { readonly kind: "create" | "act" | "mark" | "wire"; readonly member: Member; readonly after: CompositionObject }
  | { readonly kind: "undo"; readonly member: Member; readonly after: CompositionObject }
  | { readonly kind: "remove"; readonly member: Member; readonly isOrderly: boolean }
  | NoteStep
  /** The composition is over; its records go after it. */
  | { readonly kind: "forget" }
  /** For so long at most: a resource that changes wakes it. */
  | { readonly kind: "wait"; readonly forMs: number | undefined };

/** Only the composition, and the record of its deployment, are written. */
export interface NoteStep {
  readonly kind: "note";
  readonly after: CompositionObject;
  readonly effect: CompositionEffect | "announceDegraded";
  readonly deployment?: DeploymentChange;
}

/** An observation of a member, with what it says of the change that was begun. */
export interface Observed extends Observation {
  /** Does the resource have what the change asks for? True where nothing was begun. */
  readonly hasTaken: boolean;
}

export type Observe = (member: Member) => Observed;

/** Of what was never made. */
export const notMade: Observed = {
  phase: "absent",
  healthy: false,
  detail: null,
  progressPct: 0,
  actual: {},
  outputsVersion: "",
  hasTaken: true,
};

/** A deadline is written anew so often at most. */
export const markEveryMs = 15_000;

/** Until a resource changes. */
export const waiting: CompositionStep = { kind: "wait", forMs: undefined };

/** Begins a change in place. */
export function beginChange(
  composition: CompositionObject,
  member: Member,
  change: MemberChange,
  now: number,
): CompositionStep {
  const after = withMember(composition, member.id, { change: { ...change, step: "begun" } }, now);
  return { kind: "act", member, after };
}

/** Pure: what is wrong with a member, in a sentence; undefined while nothing is. */
export function faultOf(member: Member, observed: Observed): string | undefined {
  switch (observed.phase) {
    case "failed":
      return `${member.name}: ${observed.detail ?? "it failed"}`;
    case "absent":
      return `${member.name}: it is gone, and nobody here removed it.`;
    case "deleting":
      return `${member.name}: it is being deleted.`;
    case "running":
      return member.change?.step === "begun" && !observed.hasTaken
        ? `${member.name}: ${member.change.action} did not come about.`
        : undefined;
    default:
      return undefined;
  }
}

/** Writes down that there is progress, which postpones the deadline. */
export function progress(
  composition: CompositionObject,
  managed: readonly Member[],
  observe: Observe,
  now: number,
): CompositionStep {
  const { status } = composition;
  const mark = managed
    .map(
      (member) =>
        `${member.name}:${member.step}:${member.change?.step ?? ""}:${observe(member).phase}:${observe(member).progressPct}`,
    )
    .join(" ");
  const leftMs = (status.deadline ?? now) - now;
  // A deadline that is further away was set before the clock was put back.
  const isDue = leftMs < stuckAfterMs - markEveryMs || leftMs > stuckAfterMs;
  if (mark !== status.mark && isDue)
    return {
      kind: "note",
      after: withStatus(composition, { mark, deadline: now + stuckAfterMs }, now),
      effect: "none",
    };
  return { kind: "wait", forMs: Math.max(1_000, Math.min(leftMs, markEveryMs)) };
}
