import type { Stored } from "#kernel/store/resource.ts";
import type { DeploymentObject } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";

/** Number of deployments of an app that are retained: the newest ones. */
const deploymentsMax = 20;

/** The deployments of an app that are older than the retained ones, and that no machine may still have. */
export function supersededDeployments(
  { spec: { hosting }, status }: HostedApp,
  deployments: readonly Stored<DeploymentObject>[],
): Stored<DeploymentObject>[] {
  const { servingId, delivery } = status.hosting;
  const inUse = [hosting.deploymentId, servingId, ...(delivery?.releaseIds ?? [])];
  return deployments
    .toSorted((a, b) => b.object.spec.number - a.object.spec.number)
    .slice(deploymentsMax)
    .filter(({ object }) => !inUse.includes(object.metadata.id));
}
