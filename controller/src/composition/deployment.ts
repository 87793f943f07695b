import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { CompositionState } from "./composition-lifecycle.ts";

/** The record of one deployment of a project, launch of a stack or pipeline, or upgrade of a stack. */
export type DeploymentObject = Resource<DeploymentSpec, DeploymentStatus>;

export const deploymentKind = defineKind<DeploymentObject>("deployment", {
  deletedWithOrganization: true,
  indexes: [compositionOfDeployment],
});

/** Index: the records of one composition. */
export function compositionOfDeployment({ spec }: DeploymentObject): string {
  return spec.compositionId;
}

export interface DeploymentSpec {
  readonly compositionId: string;
  readonly type: "deploy" | "launch" | "upgrade";
  /** The caller in the format of the audit log, such as `user:admin`. */
  readonly actor: string;
  readonly source: string;
  readonly plan: readonly PlanEntry[];
  readonly fromVersion?: string;
  readonly toVersion?: string;
}

/** The action of a deployment on one resource. */
export interface PlanEntry {
  readonly name: string;
  /** Kind as in the descriptor, such as `postgres`. */
  readonly kind: string;
  readonly action: "create" | "update" | "noop" | "unmanaged";
  readonly changes: readonly RedactedChange[];
  /** Changes in the descriptor that the deployment does not apply. */
  readonly pendingChanges: readonly RedactedChange[];
  readonly reason: string | null;
  /** Holder of the name that the resource would have, such as `service 019a...`; absent if the name is free. */
  readonly nameHolder?: string;
  /** Paths of the spec at which the resource differs from its applied spec. */
  readonly drift: readonly string[];
  readonly monthlyCents: number;
}

/** One difference. Values are JSON; null where they are absent or secret. */
export interface RedactedChange {
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface DeploymentStatus {
  readonly state: "Accepted" | "Applying" | "Completed" | "Failed" | "Aborted";
  readonly error: string | null;
  /** State and resources of the composition at the end of the deployment; absent before. */
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

/** One step of an upgrade. */
export interface DeploymentStep {
  readonly name: string;
  readonly action: string;
  readonly status: "Pending" | "Applying" | "Completed" | "Failed";
  readonly error: string | null;
}

/** Creates the record of an accepted deployment. */
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

/** True if the deployment has ended, successfully or not. */
export function isEnded({ status }: DeploymentObject): boolean {
  return status.finishedAt !== null;
}
