import type { Log } from "@holdfast/common/log.ts";
import { machineCredential } from "../registry/registry-access.ts";
import type { AppWorkloadDeps } from "./app-workload.ts";
import type { DeploymentObject } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";
import { findDigest } from "./image-digest.ts";
import { type ImageReference, parseImageReference } from "./image-reference.ts";

/** The image of a deployment, as far as the registry has named it. */
export interface DeploymentImage {
  /** Null while it is not known. */
  readonly digest: string | null;
  /** Reason for which it will not be known; absent while it may be. */
  readonly failure?: string;
  /** Reason why it is not known yet; empty otherwise. */
  readonly delay: string;
}

/**
 * Finds the digest of a deployment's image, unless the deployment has it already. The registry's response that it has
 * no such image is final; without a response the caller asks again.
 */
export async function imageOfDeployment(
  { metadata: { id: appId, organizationId } }: HostedApp,
  { spec: { settings }, status }: DeploymentObject,
  { registry, sealer, log }: Pick<AppWorkloadDeps, "registry" | "sealer"> & { readonly log: Pick<Log, "debug"> },
  signal: AbortSignal,
): Promise<DeploymentImage> {
  if (status.digest !== null || status.state !== "deploying") return { digest: status.digest, delay: "" };
  const { imageRef } = settings;
  const image = parseImageReference(imageRef, { organizationId, registry: registry.address });
  if (typeof image === "string") return { digest: null, failure: `image_ref ${image}.`, delay: "" };
  try {
    const found = await findDigest(image, machineCredential(appId, sealer), registry, signal);
    if ("digest" in found) return { digest: found.digest, delay: "" };
    return { digest: null, failure: missingText(imageRef, image, found.tags, registry.address), delay: "" };
  } catch (error) {
    signal.throwIfAborted();
    log.debug("registry does not respond", { app: appId, error: String(error) });
    return { digest: null, delay: "The registry of images does not respond." };
  }
}

/** The failure of an image that the registry does not have, with the images that it has. */
function missingText(
  imageRef: string,
  { repository }: ImageReference,
  tags: readonly string[] | undefined,
  registry: string,
): string {
  const name = repository.slice(repository.indexOf("/") + 1);
  const push = `Push it to ${registry}/${repository}, then deploy again.`;
  if (tags === undefined)
    return `The organization has no image ${name} in the platform's registry, the only one that apps run from. ${push}`;
  const listed = tags.length === 0 ? "no tag" : `the tags ${tags.join(", ")}`;
  return `The registry has no image ${imageRef}: ${name} has ${listed}. ${push}`;
}
