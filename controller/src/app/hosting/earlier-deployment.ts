import { isDeepStrictEqual } from "node:util";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { DeploymentObject } from "./deployment.ts";

/**
 * The deployment that a rollback repeats: the given one, or the newest that has served before the one that serves now.
 * Throws OBJECT_NOT_FOUND for an unknown one, and WRONG_STATE for one that has never served or if there is none.
 */
export function earlierDeployment(
  deployments: readonly DeploymentObject[],
  servingId: string | null,
  deploymentId: string | undefined,
): DeploymentObject {
  if (deploymentId !== undefined) {
    const chosen = deployments.find(({ metadata }) => metadata.id === deploymentId);
    if (chosen === undefined)
      throw new HoldfastError("OBJECT_NOT_FOUND", "The app has no such deployment; the newest 20 remain.");
    if (chosen.status.state !== "succeeded")
      throw new HoldfastError("WRONG_STATE", "The deployment has never served. Choose one that succeeded.");
    return chosen;
  }
  const serving = deployments.find(({ metadata }) => metadata.id === servingId);
  // A restart and an attachment repeat a deployment: one before it is another.
  const isSame = ({ spec, status }: DeploymentObject) =>
    status.digest === serving?.status.digest && isDeepStrictEqual(spec.settings, serving?.spec.settings);
  const [newest] = deployments
    .filter(({ spec, status }) => status.state === "succeeded" && spec.number < (serving?.spec.number ?? 0))
    .filter((each) => !isSame(each))
    .toSorted((a, b) => b.spec.number - a.spec.number);
  if (newest === undefined) throw new HoldfastError("WRONG_STATE", "No earlier deployment of the app has served.");
  return newest;
}
