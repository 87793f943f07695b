import type { Log } from "@holdfast/common/log.ts";
import { machineCredential } from "../registry/registry-access.ts";
import type { AppWorkloadDeps } from "./app-workload.ts";
import type { DeploymentObject } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";
import { findDigest } from "./image-digest.ts";
import { parseImageReference } from "./image-reference.ts";

/** The image of a deployment, as far as the registry has named it. */
export interface DeploymentImage {
  /** Null while it is not known. */
  readonly digest: string | null;
  /** Reason for which it will not be known; absent while it may be. */
  readonly failure?: string;
  /** Reason why it is not known yet; empty otherwise. */
  readonly delay: string;
}

/** Time in which an image may appear in the registry after its deployment was requested. */
const imageWithinMs = 60_000;

/** Finds the digest of a deployment's image, unless the deployment has it already. */
export async function imageOfDeployment(
  { metadata: { id: appId, organizationId } }: HostedApp,
  { metadata: { createdAt }, spec: { settings }, status }: DeploymentObject,
  {
    registry,
    sealer,
    now,
    log,
  }: Pick<AppWorkloadDeps, "registry" | "sealer"> & { readonly now: number; readonly log: Pick<Log, "debug"> },
  signal: AbortSignal,
): Promise<DeploymentImage> {
  if (status.digest !== null || status.state !== "deploying") return { digest: status.digest, delay: "" };
  const { imageRef } = settings;
  const image = parseImageReference(imageRef, { organizationId, registry: registry.address });
  if (typeof image === "string") return { digest: null, failure: `image_ref ${image}.`, delay: "" };
  try {
    const found = await findDigest(image, machineCredential(appId, sealer), registry, signal);
    if ("digest" in found) return { digest: found.digest, delay: "" };
    const missing = `The registry has no image ${imageRef}.`;
    if (now - createdAt < imageWithinMs) return { digest: null, delay: missing };
    return { digest: null, failure: `${missing} Push it, then deploy again.`, delay: "" };
  } catch (error) {
    signal.throwIfAborted();
    log.debug("registry does not respond", { app: appId, error: String(error) });
    return { digest: null, delay: "The registry of images does not respond." };
  }
}
