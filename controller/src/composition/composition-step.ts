import type { InPlaceAction, ResourceObservation } from "#resource-kind/resource-kind.ts";
import {
  type CompositionObject,
  type Member,
  type MemberChange,
  stuckAfterMs,
  withMember,
  withStatus,
} from "./composition.ts";
import type { CompositionEffect } from "./composition-lifecycle.ts";

/** The new state of the deployment's record. */
export interface DeploymentChange {
  readonly state: "Applying" | "Completed" | "Failed" | "Aborted";
  readonly error?: string;
}

/** The next step; `after` is committed in the same transaction as the change of the resource. */
export type CompositionStep =
  | { readonly kind: "create" | "act" | "mark" | "wire"; readonly member: Member; readonly after: CompositionObject }
  | { readonly kind: "undo"; readonly member: Member; readonly after: CompositionObject }
  | { readonly kind: "remove"; readonly member: Member; readonly isOrderly: boolean }
  | RecordStep
  /** Remove the composition from the store; the mover removes its records afterwards. */
  | { readonly kind: "forget" }
  /** Wait until a resource changes, or for `forMs` at most. */
  | { readonly kind: "wait"; readonly forMs: number | undefined };

/** A step that only writes the composition and the record of its deployment. */
export interface RecordStep {
  readonly kind: "record";
  readonly after: CompositionObject;
  readonly effect: CompositionEffect | "announceDegraded";
  readonly deployment?: DeploymentChange;
}

/** An observation of a member and of its change in place. */
export interface Observed extends ResourceObservation {
  /** True if the resource has the values of the change in progress, or no change is in progress. */
  readonly isChangeApplied: boolean;
  /** The sealed spec with direct changes of users, and their added monthly cost; absent without a change. */
  readonly followed?: { readonly sealedSpec: string; readonly addedCents: number };
}

export type Observe = (member: Member) => Observed;

/** The observation of a resource that was never created. */
export const notCreated: Observed = {
  phase: "absent",
  healthy: false,
  detail: null,
  progressPct: 0,
  actual: {},
  outputsVersion: "",
  isChangeApplied: true,
};

/** Minimum interval between extensions of the deadline. */
export const progressIntervalMs = 15_000;

/** Waits until a resource changes. */
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

// biome-ignore format: a table, aligned so that it reads as one
const failureTexts: Readonly<Record<InPlaceAction, string>> = {
  redeploy_app:  "the deployment of the app failed",
  scale_app:     "the change of the app's machines failed",
  scale_service: "the change of the service's plan failed",
};

/** The failure of a member as a sentence; undefined if it has none. */
export function faultOf(member: Member, observed: Observed): string | undefined {
  switch (observed.phase) {
    case "failed":
      return `${member.name}: ${observed.detail ?? "it failed"}`;
    case "absent":
      return `${member.name}: the resource is absent, and was not removed by its deployment.`;
    case "deleting":
      return `${member.name}: it is being deleted.`;
    case "running":
      return member.change?.step === "begun" && !observed.isChangeApplied
        ? `${member.name}: ${failureTexts[member.change.action]}: ${observed.changeFailure ?? "it was not applied."}`
        : undefined;
    default:
      return undefined;
  }
}

/** Records progress, which extends the deadline. */
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
  const remainingMs = (status.deadline ?? now) - now;
  // A deadline more than 10 minutes ahead was stored before the clock was set back.
  const isDue = remainingMs < stuckAfterMs - progressIntervalMs || remainingMs > stuckAfterMs;
  if (mark !== status.progressMark && isDue)
    return {
      kind: "record",
      after: withStatus(composition, { progressMark: mark, deadline: now + stuckAfterMs }, now),
      effect: "none",
    };
  return { kind: "wait", forMs: Math.max(1_000, Math.min(remainingMs, progressIntervalMs)) };
}
