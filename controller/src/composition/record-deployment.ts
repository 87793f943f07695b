import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  compositionOfDeployment,
  deploymentKind,
  type DeploymentObject,
  deploymentsKept,
  isEnded,
} from "./deployment.ts";

/** Adds a record to a unit of work; the oldest of its composition go where there are too many. */
export function recordDeployment(
  unit: UnitOfWork,
  record: DeploymentObject,
  deployments: Pick<Collection<DeploymentObject>, "by">,
): void {
  const before = deployments.by(compositionOfDeployment, record.spec.compositionId);
  const ended = before.filter(({ object }) => isEnded(object));
  for (const old of ended.slice(0, Math.max(0, before.length + 1 - deploymentsKept))) unit.remove(deploymentKind, old);
  unit.create(deploymentKind, record);
}
