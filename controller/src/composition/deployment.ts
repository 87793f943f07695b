import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { CompositionState } from "./composition-lifecycle.ts";

/** The record of one deployment of a project, launch of a stack or pipeline, or migration of a stack. */
export type DeploymentObject = Resource<DeploymentSpec, DeploymentStatus>;

export const deploymentKind = defineKind<DeploymentObject>("deployment", {
  goesWithOrganization: true,
  indexes: [compositionOfDeployment],
});

/** Index: the records of one composition. */
export function compositionOfDeployment({ spec }: DeploymentObject): string {
  return spec.compositionId;
}

export interface DeploymentSpec {
  readonly compositionId: string;
  readonly type: "deploy" | "launch" | "upgrade";
  /** The caller as audit names it, and from where. */
  readonly actor: string;
  readonly source: string;
  readonly plan: readonly PlanEntry[];
  readonly fromVersion?: string;
  readonly toVersion?: string;
}

/** What a deployment does with one resource. */
export interface PlanEntry {
  readonly name: string;
  /** As the descriptor names it. */
  readonly kind: string;
  readonly action: "create" | "update" | "noop" | "unmanaged";
  readonly changes: readonly ShownChange[];
  /** What the descriptor says and the resource has not. */
  readonly pendingChanges: readonly ShownChange[];
  readonly reason: string | null;
  /** Paths at which the resource is not as it was made. */
  readonly drift: readonly string[];
  readonly monthlyCents: number;
}

/** Values as JSON; null where they are absent, or not to be shown. */
export interface ShownChange {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface DeploymentStatus {
  readonly state: "Accepted" | "Applying" | "Completed" | "Failed" | "Aborted";
  readonly error: string | null;
  /** The state of its composition, and its resources, when it ended; absent before. */
  readonly end?: { readonly state: CompositionState; readonly resources: readonly ResourceSnapshot[] };
  readonly steps: readonly DeploymentStep[];
  readonly progressPct: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
}

export interface ResourceSnapshot {
  readonly name: string;
  readonly kind: string;
  readonly id: string;
  readonly status: string;
  readonly detail: string | null;
}

/** One step of a migration. */
export interface DeploymentStep {
  readonly name: string;
  readonly action: string;
  readonly status: "Pending" | "Applying" | "Completed" | "Failed";
  readonly error: string | null;
}

/** Pure: a record that has not begun. */
export function newDeployment(
  id: string,
  organizationId: string,
  spec: DeploymentSpec,
  steps: readonly DeploymentStep[],
  now: number,
): DeploymentObject {
  return {
    metadata: newMetadata(id, now, { organizationId }),
    spec,
    status: { state: "Accepted", error: null, steps, progressPct: 0, startedAt: null, finishedAt: null },
  };
}

/** Has it ended, in whatever way? */
export function isEnded({ status }: DeploymentObject): boolean {
  return status.finishedAt !== null;
}
