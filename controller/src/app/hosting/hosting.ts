import type { Delivery } from "./delivery-plan.ts";
import type { HostingState } from "./hosting-lifecycle.ts";

/**
 * A hosted app runs an image on machines that it owns, one for each replica. Each change of the image or of its
 * settings is a deployment (deployment.ts), which the machines get as a release.
 */
export interface HostingSpec {
  readonly zone: string;
  readonly planName: string;
  readonly storageSizeGb: number;
  readonly storageTier: string;
  /** Number of machines. */
  readonly replicas: number;
  /** Id of the deployment that the app should run: the newest one, or the one that serves if the newest has failed. */
  readonly deploymentId: string;
  /** Number of the newest deployment. */
  readonly deploymentNumber: number;
  /** Address that belongs to the app alone; absent without one. */
  readonly floatingIp?: string;
  /** Absent: all clients reach the app. */
  readonly loginForm?: LoginFormSpec;
  /** Absent: on. Off: the machines remain, and run no release. */
  readonly power?: "off";
}

export interface HostingStatus {
  readonly state: HostingState;
  readonly since: number;
  /** The operation in progress; null without one. */
  readonly operationId: string | null;
  /** Ids of the app's machines; more than the replicas while one is replaced. */
  readonly nodeIds: readonly string[];
  /** Ids of the machines on which a release serves, as they last reported. */
  readonly readyIds: readonly string[];
  /** True once every ingress passes requests to a machine of the app; false again while it is stopped or in Error. */
  readonly isPublished: boolean;
  /** Ids of the machines that clients may have reached; absent in a status of an earlier release: all machines. */
  readonly servedIds?: readonly string[];
  /** The superfluous machines, which are deleted once they have no requests; absent: none. */
  readonly endings?: readonly NodeEnding[];
  /** Deployment that all machines have served; null before the first one. */
  readonly servingId: string | null;
  /** The last deployment that failed; null without one. */
  readonly failedId: string | null;
  /** The last delivery to the machines; null before the first one. */
  readonly delivery: Delivery | null;
  /** Reason of the state Error, for users; null in other states. */
  readonly error: string | null;
  /** Ids of the services that admit the app's machines; absent before the first attachment. */
  readonly admittedBy?: readonly string[];
  /** The token of the app's programs for the platform's API; absent before the first round. */
  readonly apiToken?: ApiToken;
  /** Time from which on no machine has been healthy, in milliseconds since 1970; null while one is. */
  readonly unhealthySince: number | null;
  /** Reason that a machine gives for it, for users; absent: none. */
  readonly unhealthyReason?: string;
}

/** The end of a superfluous machine. */
export interface NodeEnding {
  readonly id: string;
  /** Time from which on it is superfluous, in milliseconds since 1970. */
  readonly since: number;
}

/** A form before an app, by which its clients sign in. */
export interface LoginFormSpec {
  /** The generated password, sealed with the key of the app. */
  readonly sealedPassword: string;
}

/** A token, which only releases of the app get as text. */
export interface ApiToken {
  /** Id of the token's object. */
  readonly id: string;
  readonly sealed: string;
}

/** The software of an app's machines, as node images name it. */
export const appSoftware = { name: "app", version: "1" } as const;
/** Port of a machine's address at which its front accepts requests and passes them to the port of the program. */
export const frontPort = 8_080;
/** Term of the tasks for an app's machines: each machine has one owner for its whole life. */
export const appTerm = 1;
/** Maximum length of a line in a stored reason. */
export const lineMax = 1_000;
