import { lookUp } from "@holdfast/common/look-up.ts";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  MigrationStatus,
  type Stack,
  type StackMigration,
  StackMigrationSchema,
  StackSchema,
  StackStatus,
  type StackTemplateSchema,
  type UpgradeChangeSchema,
  UpgradeChangeType,
} from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import { amountOf } from "#catalog/price.ts";
import type { CompositionState } from "#composition/composition-lifecycle.ts";
import type { Observe } from "#composition/composition-step.ts";
import type { CompositionObject } from "#composition/composition.ts";
import { snapshotOf, stepsNow } from "#composition/deployment-progress.ts";
import { type DeploymentObject, isEnded } from "#composition/deployment.ts";
import type { UpgradeChange } from "#composition/upgrade.ts";
import type { Template } from "../template/template.ts";

// biome-ignore format: a table, aligned so that it reads as one
const stackStates: Record<CompositionState, StackStatus> = {
  Pending:      StackStatus.PENDING,
  Provisioning: StackStatus.PROVISIONING,
  Wiring:       StackStatus.WIRING,
  Running:      StackStatus.RUNNING,
  Upgrading:    StackStatus.UPGRADING,
  RollingBack:  StackStatus.ROLLING_BACK,
  Failed:       StackStatus.FAILED,
  Deleting:     StackStatus.DELETING,
  Deleted:      StackStatus.DELETING,
};

// biome-ignore format: a table, aligned so that it reads as one
const migrationStates: Record<DeploymentObject["status"]["state"], MigrationStatus> = {
  Accepted:  MigrationStatus.ACCEPTED,
  Applying:  MigrationStatus.APPLYING,
  Completed: MigrationStatus.COMPLETED,
  Failed:    MigrationStatus.FAILED,
  Aborted:   MigrationStatus.FAILED,
};

// biome-ignore format: a table, aligned so that it reads as one
const changeTypes: Record<UpgradeChange["change"], UpgradeChangeType> = {
  unchanged: UpgradeChangeType.UNCHANGED,
  in_place:  UpgradeChangeType.IN_PLACE,
  blocked:   UpgradeChangeType.BLOCKED,
};

/** The API message of a stack. */
export function stackMessage(stack: CompositionObject, observe: Observe): Stack {
  const { metadata, spec, status } = stack;
  return create(StackSchema, {
    id: metadata.id,
    name: metadata.name,
    status: stackStates[status.state],
    resources: snapshotOf(stack, observe).map(({ name, kind, id, status: word, detail }) => ({
      symbolicName: name,
      kind,
      status: word,
      ...(status.members.find((member) => member.id === id)?.step !== "planned" && { serviceId: id }),
      ...(detail !== null && { statusDetail: detail }),
    })),
    templateName: spec.template?.name ?? "",
    templateVersion: spec.template?.version ?? "",
    monthlyCost: amountOf(spec.monthlyCents),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(status.detail !== null && { statusDetail: status.detail }),
  });
}

/** The API message of a template; `reason`: obstacle to a launch in this installation, if there is one. */
export function templateMessage(
  template: Template,
  reason: string | undefined,
): MessageInitShape<typeof StackTemplateSchema> {
  const { name, version, title, description, resources, dependencies } = template;
  return {
    name,
    version,
    title,
    description,
    available: reason === undefined,
    ...(reason !== undefined && { unavailableReason: reason }),
    resources: resources.map((resource) => ({
      symbolicName: resource.name,
      kind: resource.kind,
      dependsOn: [...(lookUp(dependencies, resource.name) ?? [])],
    })),
  };
}

/** The API message of an upgrade's change; the value of `env`, which may have secrets, is null. */
export function upgradeChangeMessage(planned: UpgradeChange): MessageInitShape<typeof UpgradeChangeSchema> {
  const { name, kind, change, action, target, reason } = planned;
  const visibleTarget =
    target && Object.fromEntries(Object.entries(target).map(([key, value]) => [key, key === "env" ? null : value]));
  return {
    symbolicName: name,
    kind,
    change: changeTypes[change],
    ...(action !== undefined && { action }),
    ...(visibleTarget !== undefined && { targetSpec: new TextEncoder().encode(JSON.stringify(visibleTarget)) }),
    ...(reason !== undefined && { reason }),
  };
}

/** The API message of a migration; `stack` is its current composition. */
export function migrationMessage(record: DeploymentObject, stack: CompositionObject): StackMigration {
  const { metadata, spec, status } = record;
  const steps = isEnded(record) ? status.steps : stepsNow(status.steps, stack.status.members);
  // The record remains Accepted until the end, so the state Applying is derived from the steps.
  const isApplying = status.state === "Accepted" && steps.some((step) => step.status !== "Pending");
  return create(StackMigrationSchema, {
    id: metadata.id,
    stackId: spec.compositionId,
    fromVersion: spec.fromVersion ?? "",
    toVersion: spec.toVersion ?? "",
    status: isApplying ? MigrationStatus.APPLYING : migrationStates[status.state],
    steps: steps.map(({ name, action, status: word, error }) => ({
      symbolicName: name,
      action,
      status: word,
      ...(error !== null && { error }),
    })),
    createdAt: timestampFromMs(metadata.createdAt),
    ...(status.error !== null && { statusDetail: status.error }),
    ...(status.startedAt !== null && { startedAt: timestampFromMs(status.startedAt) }),
    ...(status.finishedAt !== null && { finishedAt: timestampFromMs(status.finishedAt) }),
  });
}

/** The response to an upgrade of a stack that has the newest version. */
export function upToDateMessage(stackId: string, version: string): StackMigration {
  return create(StackMigrationSchema, {
    stackId,
    fromVersion: version,
    toVersion: version,
    status: MigrationStatus.UP_TO_DATE,
  });
}
