import { next } from "@holdfast/common/machine.ts";
import { completeDelivery } from "./delivery-endpoints.ts";
import {
  type Delivery,
  type DeploymentResult,
  type EndpointTarget,
  type NodeReport,
  planDelivery,
} from "./delivery-plan.ts";
import type { HostedApp } from "./hosted-app.ts";
import { type HostingStatus, lineMax } from "./hosting.ts";
import { type HostingEffect, type HostingEvent, hostingLifecycle } from "./hosting-lifecycle.ts";
import { isServing, planEndings } from "./node-endings.ts";
import type { ObservedNode } from "./observed-node.ts";

/** The facts from which an app's next status follows. */
export interface HostingFacts {
  readonly now: number;
  /** Ids for new machines, as many as an app may have. */
  readonly newIds: readonly string[];
  readonly nodes: readonly ObservedNode[];
  /** State of the desired deployment. Its digest is known once its image can be delivered. */
  readonly desired: {
    /** The reason of its failure; absent if it has not failed. */
    readonly failure?: string;
    readonly hasDigest: boolean;
  };
  /** Reason for which the desired deployment cannot be continued; undefined while it can. */
  readonly failure: string | undefined;
  /** Time that the delivered releases give their requests. */
  readonly drainMs: number;
  /** True if every ingress passes requests at the name of the app to a machine. */
  readonly isReachable: boolean;
  /** How containers reach the platform's API; undefined if they do not. */
  readonly platformApi?: EndpointTarget | undefined;
  /** Names and ports of the attached services. */
  readonly endpoints: readonly EndpointTarget[];
}

export interface HostingPlan {
  readonly status: HostingStatus;
  /** The deployment that the app should run: after a failed one again the one that serves. */
  readonly deploymentId: string;
  /** Ids of machines to create. */
  readonly created: readonly string[];
  /** Ids of machines to delete. */
  readonly deleted: readonly string[];
  /** Set when the desired deployment ends. */
  readonly result: DeploymentResult | undefined;
  readonly event: HostingEvent | undefined;
  readonly effect: HostingEffect;
}

/** Time without a healthy machine after which a running app is in Error. */
const unhealthyAfterMs = 60_000;

/** The next status of an app. A controller that continues what another one began computes the same from the store. */
export function planHosting(app: HostedApp, facts: HostingFacts): HostingPlan {
  const { spec, status } = app;
  const { hosting } = status;
  const { nodes, failure, desired, now } = facts;
  const { replicas, deploymentId, power } = spec.hosting;
  const isOff = power === "off";
  const isStarting = hosting.servingId !== null && (hosting.state === "Provisioning" || hosting.state === "Deploying");
  const { remaining, endings, deleted, hasServed } = planEndings(app, facts);
  const created = facts.newIds.slice(0, Math.max(0, replicas - remaining.length));
  const isEnding = ({ id }: ObservedNode) => endings.some((each) => each.id === id);
  // Clients are refused before a machine is drained: it is stopped in a round after the one that removes its route.
  const drainedIds = endings
    .map(({ id }) => id)
    .filter((id) => !deleted.includes(id) && !hosting.readyIds.includes(id));
  const active = remaining.filter((node) => !isEnding(node));
  const nodeIds = [
    ...nodes.filter(({ id, presence }) => presence !== "absent" && !deleted.includes(id)).map(({ id }) => id),
    ...created,
  ];

  const reports = [...active.map(({ report }) => report), ...created.map(() => undefined)];
  const isReady = created.length === 0 && active.length > 0 && active.every(({ hasSession }) => hasSession);
  // A release that was switched to has been ready on all machines: each of them serves it once it can.
  const isSwitched = hosting.servingId !== null && hosting.delivery?.servingReleaseId === deploymentId;
  const failed: DeploymentResult | undefined =
    failure === undefined || desired.failure !== undefined || isSwitched
      ? undefined
      : { kind: "failed", reason: failure, lastLines: [] };
  const hasFailed = desired.failure !== undefined || failed !== undefined;
  const delivered: { delivery: Delivery | null; result?: DeploymentResult } =
    !desired.hasDigest || (hasFailed && hosting.delivery === null)
      ? { delivery: hosting.delivery }
      : planDelivery(
          {
            desired: deploymentId,
            serving: hosting.servingId ?? undefined,
            hasFailed,
            delivery: hosting.delivery ?? undefined,
          },
          reports,
        );
  const isPublished = !isOff && hosting.state !== "Error" && (hosting.isPublished || facts.isReachable);
  // A deployment ends once clients reach the app, but one after the first waits only while it has time.
  const isLate = failure !== undefined && hosting.servingId !== null;
  const isAwaited = delivered.result?.kind === "serves" && !isPublished && !isLate;
  const result = failed ?? (isAwaited ? undefined : delivered.result);
  const isFailed = hasFailed || result?.kind === "failed";
  const isHealthy = nodes.some((node) => node.isHealthy);
  const unhealthySince = isOff || isHealthy || hosting.servingId === null ? null : (hosting.unhealthySince ?? now);
  const { unhealthyReason: _, endings: __, ...before } = hosting;
  const unhealthyReason = unhealthySince === null ? undefined : unhealthyReasonOf(nodes);
  const changed: HostingStatus = {
    ...before,
    nodeIds,
    // Clients are refused before the machines stop.
    readyIds: nodeIds.filter((id) => {
      const node = nodes.find((each) => each.id === id);
      if (isOff || (node !== undefined && isEnding(node))) return false;
      // A machine that starts again reports the release that it will serve.
      if (isStarting && node?.isHealthy !== true) return false;
      const report = node?.report;
      return report?.app === undefined ? hosting.readyIds.includes(id) : isServing(report);
    }),
    servedIds: nodeIds.filter((id) => nodes.some((node) => node.id === id && hasServed(node))),
    ...(endings.length > 0 && { endings }),
    isPublished,
    delivery: completeDelivery(hosting.delivery, delivered.delivery, {
      first: facts.platformApi,
      targets: facts.endpoints,
      isStopped: isOff,
      drainedIds,
    }),
    unhealthySince,
    ...(unhealthyReason !== undefined && { unhealthyReason }),
    ...(result?.kind === "serves" && { servingId: deploymentId, failedId: null }),
    ...(result?.kind === "failed" && { failedId: deploymentId }),
  };
  const generation = changed.delivery?.generation;
  const isStopped =
    isOff &&
    remaining.every((node) => generation === undefined || (node.isStopped && node.report?.generation === generation));
  const isServed =
    isReady && !isOff && active.every((node) => node.isHealthy && servesOn(node.report, changed.servingId ?? ""));
  const isStarted = isServed && isPublished;
  // It may have failed in a round of another event, such as one that created the machines, or before a stop.
  const lostReason = hosting.servingId === null ? desired.failure : undefined;
  const failedReason = result?.kind === "failed" ? result.reason : lostReason;
  const event = eventOf(changed, {
    isReady,
    isHealthy,
    isOff,
    isStopped,
    isStarted,
    hasServed: result?.kind === "serves",
    hasFailed: failedReason !== undefined,
    now,
  });
  const row = event && next(hostingLifecycle, hosting.state, event);
  const state = row?.[2] ?? hosting.state;
  const reason = failedReason ?? noHealthyMachine(unhealthyReason);
  return {
    status: {
      ...changed,
      state,
      since: state === hosting.state ? hosting.since : now,
      error: state !== "Error" ? null : event === undefined ? hosting.error : reason,
    },
    deploymentId: isFailed ? (hosting.servingId ?? deploymentId) : deploymentId,
    created,
    deleted,
    result,
    event: row && event,
    effect: row?.[3] ?? "none",
  };
}

/** Reason of an app without a healthy machine, with the one that a machine gives. */
export function noHealthyMachine(reason: string | undefined): string {
  return reason === undefined ? "No machine of the app is healthy." : `No machine of the app is healthy. ${reason}`;
}

function unhealthyReasonOf(nodes: readonly ObservedNode[]): string | undefined {
  return nodes.map(({ reason = "" }) => reason.slice(0, lineMax)).find((reason) => reason !== "");
}

function servesOn(report: NodeReport | undefined, deploymentId: string): boolean {
  return report?.app?.servingReleaseId === deploymentId;
}

function eventOf(
  { state, servingId, unhealthySince, nodeIds }: HostingStatus,
  facts: {
    readonly isReady: boolean;
    readonly isHealthy: boolean;
    readonly isOff: boolean;
    /** True if all machines have stopped. */
    readonly isStopped: boolean;
    /** True if the last deployment that succeeded is healthy on all machines, and clients reach it. */
    readonly isStarted: boolean;
    /** True in the round in which the desired deployment succeeds. */
    readonly hasServed: boolean;
    /** True if the desired deployment fails in this round, or has failed before any other one served. */
    readonly hasFailed: boolean;
    readonly now: number;
  },
): HostingEvent | undefined {
  const { isReady, isHealthy, isOff, isStopped, isStarted, hasServed, hasFailed, now } = facts;
  switch (state) {
    case "Pending":
      return nodeIds.length > 0 ? "machinesCreated" : undefined;
    case "Provisioning":
      if (hasFailed) return "deploymentFailed";
      return isReady ? "machinesReady" : undefined;
    case "Deploying":
      if (hasFailed) return "deploymentFailed";
      return hasServed || isStarted ? "deployed" : undefined;
    case "Stopped":
      return undefined;
    case "Running":
      if (isOff) return isStopped ? "stopped" : undefined;
      return unhealthySince !== null && now - unhealthySince >= unhealthyAfterMs ? "becameUnhealthy" : undefined;
    case "Error":
      if (isOff) return isStopped ? "stopped" : undefined;
      return servingId !== null && isHealthy ? "becameHealthy" : undefined;
  }
}
