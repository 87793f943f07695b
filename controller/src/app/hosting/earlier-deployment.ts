import { isDeepStrictEqual } from "node:util";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { DeploymentObject } from "./deployment.ts";

/**
 * The deployment that a rollback repeats: the given one, or the newest that has served before the one that serves now.
 * Throws OBJECT_NOT_FOUND for an unknown one, and WRONG_STATE if there is none, or if none is given and the newest
 * deployment has failed: what served before it serves on, so there is nothing to undo.
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
    return chosen;
  }
  const serving = deployments.find(({ metadata }) => metadata.id === servingId);
  const newestFirst = deployments.toSorted((a, b) => b.spec.number - a.spec.number);
  // A restart and an attachment repeat a deployment: one before it is another.
  const isSame = ({ spec, status }: DeploymentObject) =>
    status.digest === serving?.status.digest && isDeepStrictEqual(spec.settings, serving?.spec.settings);
  const earlier = newestFirst
    .filter(({ spec, status }) => status.state === "succeeded" && spec.number < (serving?.spec.number ?? 0))
    .find((each) => !isSame(each));
  const [newest] = newestFirst;
  if (serving !== undefined && newest?.status.state === "failed")
    throw new HoldfastError("WRONG_STATE", `${unchangedBy(newest, serving)} ${adviceOf(earlier)}`);
  if (earlier === undefined) throw new HoldfastError("WRONG_STATE", "No earlier deployment of the app has served.");
  return earlier;
}

function unchangedBy(failed: DeploymentObject, { spec }: DeploymentObject): string {
  const { number, settings } = spec;
  return `Deployment ${failed.spec.number} failed and changed nothing: number ${number} (${settings.imageRef}) serves.`;
}

function adviceOf(earlier: DeploymentObject | undefined): string {
  if (earlier === undefined) return "No earlier deployment has served.";
  const { metadata, spec } = earlier;
  return `To deploy number ${spec.number} (${spec.settings.imageRef}), name its deployment_id, ${metadata.id}.`;
}
