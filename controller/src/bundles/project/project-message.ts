import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Deployment,
  DeploymentSchema,
  DeploymentStatus,
  PlanAction,
  type PlanChangeSchema,
  type PlanEntrySchema,
  type Project,
  ProjectSchema,
  ProjectStatus,
} from "@holdfast/proto/holdfast/v1/project_pb.ts";
import { amountOf } from "#catalog/price.ts";
import type { CompositionState } from "#composition/composition-lifecycle.ts";
import { isMemberHealthy } from "#composition/composition-plan.ts";
import type { Observe } from "#composition/composition-step.ts";
import type { CompositionObject } from "#composition/composition.ts";
import { progressOf, snapshotOf } from "#composition/deployment-progress.ts";
import {
  type DeploymentObject,
  isEnded,
  type PlanEntry,
  type ResourceSnapshot,
  type RedactedChange,
} from "#composition/deployment.ts";

// biome-ignore format: a table, aligned so that it reads as one
export const projectStates: Record<CompositionState, ProjectStatus> = {
  Pending:      ProjectStatus.PENDING,
  Provisioning: ProjectStatus.PROVISIONING,
  Wiring:       ProjectStatus.WIRING,
  Running:      ProjectStatus.RUNNING,
  // Only a stack can be Upgrading.
  Upgrading:    ProjectStatus.UNSPECIFIED,
  RollingBack:  ProjectStatus.ROLLING_BACK,
  Failed:       ProjectStatus.FAILED,
  Deleting:     ProjectStatus.DELETING,
  Deleted:      ProjectStatus.DELETED,
};

// biome-ignore format: a table, aligned so that it reads as one
const deploymentStates: Record<DeploymentObject["status"]["state"], DeploymentStatus> = {
  Accepted:  DeploymentStatus.ACCEPTED,
  Applying:  DeploymentStatus.APPLYING,
  Completed: DeploymentStatus.COMPLETED,
  Failed:    DeploymentStatus.FAILED,
  Aborted:   DeploymentStatus.ABORTED,
};

// biome-ignore format: a table, aligned so that it reads as one
const planActions: Record<PlanEntry["action"], PlanAction> = {
  create:    PlanAction.CREATE,
  update:    PlanAction.UPDATE,
  noop:      PlanAction.NOOP,
  unmanaged: PlanAction.UNMANAGED,
};

/** The API message of a project. */
export function projectMessage(project: CompositionObject, observe: Observe): Project {
  const { metadata, spec, status } = project;
  return create(ProjectSchema, {
    id: metadata.id,
    name: metadata.name,
    status: projectStates[status.state],
    health: healthOf(project, observe),
    lastDeploymentId: status.deploymentId,
    resources: resourceMessages(snapshotOf(project, observe), project),
    monthlyCost: amountOf(spec.monthlyCents),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(status.detail !== null && { statusDetail: status.detail }),
  });
}

function healthOf({ status }: CompositionObject, observe: Observe): string {
  const managed = status.members.filter(({ isInDescriptor, step }) => isInDescriptor && step === "ready");
  if (managed.length === 0) return "unknown";
  return managed.every((member) => isMemberHealthy(observe(member))) ? "healthy" : "degraded";
}

function resourceMessages(snapshot: readonly ResourceSnapshot[], { status }: CompositionObject) {
  return snapshot.map(({ name, kind, id, status: word, detail }) => {
    const member = status.members.find((each) => each.id === id);
    return {
      logicalName: name,
      kind,
      status: word,
      managed: member?.isInDescriptor ?? true,
      ...(member?.step !== "planned" && { resourceId: id }),
      ...(detail !== null && { statusDetail: detail }),
    };
  });
}

/** The API message of a deployment; `project` is its current composition. */
export function deploymentMessage(record: DeploymentObject, project: CompositionObject, observe: Observe): Deployment {
  const { metadata, spec, status } = record;
  const end = isEnded(record) ? status.end : undefined;
  return create(DeploymentSchema, {
    id: metadata.id,
    projectId: spec.compositionId,
    status: deploymentStates[status.state],
    plan: spec.plan.map(planMessage),
    projectStatus: projectStates[end?.state ?? project.status.state],
    resources: resourceMessages(end?.resources ?? snapshotOf(project, observe), project),
    progressPct: isEnded(record) ? status.progressPct : progressOf(project, observe),
    actor: spec.actor,
    createdAt: timestampFromMs(metadata.createdAt),
    ...(status.error !== null && { error: status.error }),
    ...(status.startedAt !== null && { startedAt: timestampFromMs(status.startedAt) }),
    ...(status.finishedAt !== null && { finishedAt: timestampFromMs(status.finishedAt) }),
  });
}

/** The API message of a plan's entry. */
export function planMessage(entry: PlanEntry): MessageInitShape<typeof PlanEntrySchema> {
  return {
    logicalName: entry.name,
    kind: entry.kind,
    action: planActions[entry.action],
    changes: entry.changes.map(changeMessage),
    pendingChanges: entry.pendingChanges.map(changeMessage),
    drift: [...entry.drift],
    monthlyCost: amountOf(entry.monthlyCents),
    ...(entry.reason !== null && { reason: entry.reason }),
  };
}

/** The API message of a difference. */
export function changeMessage({ path, before, after }: RedactedChange): MessageInitShape<typeof PlanChangeSchema> {
  return {
    path,
    ...(before !== null && { before: new TextEncoder().encode(before) }),
    ...(after !== null && { after: new TextEncoder().encode(after) }),
  };
}
