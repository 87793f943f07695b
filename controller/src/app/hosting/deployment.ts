import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/**
 * A deployment of a hosted app: an image with its settings, none of which ever changes. Its id is the id of the release
 * on the app's machines.
 */
export type DeploymentObject = Resource<DeploymentSpec, DeploymentStatus>;

export const deploymentKind = defineKind<DeploymentObject>("app-deployment", {
  deletedWithOrganization: true,
  indexes: [appOfDeployment],
});

/** Index: the deployments of an app. */
export function appOfDeployment({ spec }: DeploymentObject): string {
  return spec.appId;
}

export interface DeploymentSpec {
  readonly appId: string;
  /** 1 for the app's first deployment, and one more for each next one. */
  readonly number: number;
  readonly settings: ReleaseSettings;
}

/** Choices of a user for a release. */
export interface ReleaseSettings {
  /** The text of the user, such as `shop:1`. */
  readonly imageRef: string;
  /** Program and arguments in place of the image's; empty for the image's. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Sealed JSON of the secret variables, with the key of the app; empty without one. */
  readonly sealedEnvironment: string;
  /** Names of the sealed variables. */
  readonly secretNames: readonly string[];
  /** Port on which the program listens. */
  readonly port: number;
  /** Empty: the release is ready once its port accepts connections. */
  readonly healthCheckPath: string;
  readonly startTimeoutSeconds: number;
  readonly drainSeconds: number;
}

export interface DeploymentStatus {
  /** Deploying: until all machines serve it, or one reports that it failed. */
  readonly state: "deploying" | "succeeded" | "failed";
  /** Digest of the image, such as `sha256:...`; null until the registry has named it. */
  readonly digest: string | null;
  /** Reason of a failure, or of a delay, for users; empty without one. */
  readonly reason: string;
  /** The last lines that a failed release printed. */
  readonly lastLines: readonly string[];
  readonly finishedAt: number | null;
}

/** The status of a new deployment. `digest` is known for one that repeats an earlier deployment. */
export function newDeploymentStatus(digest: string | null): DeploymentStatus {
  return { state: "deploying", digest, reason: "", lastLines: [], finishedAt: null };
}

/** The status of a deployment that has ended. */
export function finishedDeployment(
  { status }: DeploymentObject,
  result: Pick<DeploymentStatus, "state" | "reason" | "lastLines">,
  now: number,
): DeploymentStatus {
  return { ...status, ...result, finishedAt: now };
}
