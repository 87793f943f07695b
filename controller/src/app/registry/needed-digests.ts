import type { Stored } from "#kernel/store/resource.ts";
import type { DeploymentObject } from "../hosting/deployment.ts";

/**
 * Selects the digests that a deployment has: it serves, it is in progress, or a rollback could deploy it again. A
 * deployment whose digest is not known yet names its image by a tag or by the digest itself.
 */
export function neededDigests(
  deployments: Iterable<Stored<DeploymentObject>>,
  digests: readonly string[],
): readonly string[] {
  const found = new Set<string>();
  for (const { object } of deployments) {
    const { imageRef } = object.spec.settings;
    found.add(object.status.digest ?? imageRef.slice(imageRef.indexOf("@") + 1));
  }
  return digests.filter((digest) => found.has(digest));
}
