import type { AppObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";

/**
 * A new release of an app replaces the one that serves in two deliveries to all of its nodes. The first adds it beside
 * the serving one; the second, once each node reports it ready, names it alone, and each node switches and drains. A
 * release that fails on any node before that is removed, so it never gets a request. Every step follows from stored
 * values and from reports, so a controller continues what another one began.
 */
export interface Delivery {
  /** Generation of the workload spec on the nodes: each different delivery has the next one. */
  readonly generation: number;
  /** One or two releases; the last one is the newest. */
  readonly releaseIds: readonly string[];
  readonly servingReleaseId: string;
  /** Names that the containers reach besides the internet; absent: none. */
  readonly endpoints?: readonly DeliveredEndpoint[];
  /** True: the machines run no release. */
  readonly isStopped?: true;
  /** Machines that end their requests and run no release any more, before they are deleted; absent: none. */
  readonly drainedIds?: readonly string[];
}

/** Maximum number of addresses of one name that containers reach. */
export const addressesMax = 3;

/** A name and a port that containers of an app reach, with the addresses of the name. */
export interface EndpointTarget {
  readonly host: string;
  readonly port: number;
  readonly addresses: readonly string[];
  /** Port of the addresses; absent: the port that containers use. */
  readonly targetPort?: number;
}

/** An endpoint with the number of its relay on each machine, which never changes while the app has the endpoint. */
export interface DeliveredEndpoint extends EndpointTarget {
  readonly relay: number;
}

/** The releases of an app, as they are stored. */
export interface StoredReleases {
  /** Release that the app should run. */
  readonly desired: string;
  /** Release that all nodes have served; undefined before the first one. */
  readonly serving: string | undefined;
  /** True once the desired release has failed: it is not delivered again. */
  readonly hasFailed: boolean;
  /** The current delivery; undefined before the first one. */
  readonly delivery: Delivery | undefined;
}

/** A node's report about the delivery of a generation. */
export interface NodeReport {
  readonly generation: number;
  readonly app: Pick<AppObservation, "servingReleaseId" | "releases"> | undefined;
}

/** The result of a deployment, as the reports have it. */
export type DeploymentResult =
  | { readonly kind: "serves" }
  | { readonly kind: "failed"; readonly reason: string; readonly lastLines: readonly string[] };

export interface DeliveryPlan {
  /** The delivery that the nodes should have. */
  readonly delivery: Delivery;
  /** Present when the desired release serves on all nodes, or has failed on one. */
  readonly result?: DeploymentResult;
}

/** `reports`: of all nodes that the app should have; undefined for a node that has not reported. */
export function planDelivery(stored: StoredReleases, reports: readonly (NodeReport | undefined)[]): DeliveryPlan {
  const { desired, serving, hasFailed, delivery } = stored;
  // A release that was switched to is ready on all nodes, also before all of them report that it serves.
  const live = serving === undefined ? undefined : (delivery?.servingReleaseId ?? serving);
  if (hasFailed || (serving === desired && live === desired)) return { delivery: next(delivery, live ?? desired) };
  const current = reports.flatMap((report) => {
    const isCurrent = report !== undefined && report.generation === delivery?.generation && report.app !== undefined;
    return isCurrent && report.app !== undefined ? [report.app] : [];
  });
  const isDelivered = delivery?.releaseIds.includes(desired) === true;
  // The switch is not undone: a ready release that ends is started again by its node.
  const failed =
    isDelivered && live !== desired
      ? current.flatMap(({ releases }) => releases).find(({ id, state }) => id === desired && state === "failed")
      : undefined;
  if (failed !== undefined)
    return {
      delivery: next(delivery, live ?? desired),
      result: { kind: "failed", reason: failed.reason, lastLines: failed.lastLines },
    };
  const isComplete = reports.length > 0 && current.length === reports.length;
  if (isComplete && delivery?.servingReleaseId === desired) {
    const serves = current.every(({ servingReleaseId }) => servingReleaseId === desired);
    return { delivery, ...(serves && { result: { kind: "serves" } }) };
  }
  if (delivery?.servingReleaseId === desired) return { delivery };
  if (live === undefined) return { delivery: next(delivery, desired) };
  const isReady = ({ releases }: NonNullable<NodeReport["app"]>) =>
    releases.some(({ id, state }) => id === desired && state === "ready");
  if (isDelivered && isComplete && current.every(isReady)) return { delivery: next(delivery, desired) };
  return { delivery: next(delivery, live, desired) };
}

/** The delivery with these releases, of which the first one serves; the same one if it has them already. */
function next(delivery: Delivery | undefined, serving: string, other?: string): Delivery {
  const releaseIds = other === undefined ? [serving] : [serving, other];
  const isSame = delivery?.servingReleaseId === serving && delivery.releaseIds.join() === releaseIds.join();
  if (isSame) return delivery;
  return { generation: (delivery?.generation ?? 0) + 1, releaseIds, servingReleaseId: serving };
}
