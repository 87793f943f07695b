import type { Delivery, NodeReport } from "./delivery-plan.ts";
import type { HostedApp } from "./hosted-app.ts";
import type { NodeEnding } from "./hosting.ts";
import type { ObservedNode } from "./observed-node.ts";

interface EndingsFacts {
  readonly nodes: readonly ObservedNode[];
  readonly now: number;
  /** Time that the delivered releases give their requests. */
  readonly drainMs: number;
}

/** The superfluous machines of an app: each is deleted once it certainly has no requests. */
export interface EndingsPlan {
  /** The machines that exist and may remain: those that should, then those that are superfluous. */
  readonly remaining: readonly ObservedNode[];
  /** The machines that end: they lose their route, end their requests and are deleted. */
  readonly endings: readonly NodeEnding[];
  /** Ids of those that are deleted now. */
  readonly deleted: readonly string[];
  /** True for a machine that clients may have reached. */
  readonly hasServed: (node: ObservedNode) => boolean;
}

/**
 * Time in which an ingress loses the route of a machine, and an agent or a controller that was killed has its session
 * again.
 */
export const silentDrainGraceMs = 60_000;

/**
 * A missing session or report is no proof: the release of a machine serves without agents and controllers. Such a
 * machine counts as drained once its requests have had their time, or its provider reports that it does not run.
 */
export function planEndings(
  { spec, status: { hosting } }: HostedApp,
  { nodes, now, drainMs }: EndingsFacts,
): EndingsPlan {
  const { replicas } = spec.hosting;
  const before = new Map((hosting.endings ?? []).map(({ id, since }) => [id, since]));
  const serves = ({ report }: ObservedNode) =>
    hosting.servingId !== null && report?.app?.servingReleaseId === hosting.servingId;
  const servesNow = (node: ObservedNode) => node.hasSession && serves(node);

  // The first ones remain: of machines that are equal, the oldest.
  const rankOf = (node: ObservedNode) => (before.has(node.id) ? 2 : servesNow(node) ? 0 : 1);
  const present = nodes.filter(({ presence }) => presence === "present");
  const remaining = present.toSorted((a, b) => rankOf(a) - rankOf(b));
  const superfluous = [...nodes.filter(({ presence }) => presence === "leaving"), ...remaining.slice(replicas)];
  // A machine begins to end only once as many others serve as the app should have. It continues if one of them loses
  // its session afterwards.
  const lasting = remaining.slice(0, replicas).filter(serves);
  const mayBegin = lasting.filter(servesNow).length >= replicas;
  const ending = lasting.length < replicas ? [] : superfluous.filter(({ id }) => mayBegin || before.has(id));

  const servedIds = hosting.servedIds ?? hosting.nodeIds;
  const hasServed = ({ id, report }: ObservedNode) =>
    servedIds.includes(id) || hosting.readyIds.includes(id) || isServing(report);
  const sinceOf = ({ id }: ObservedNode) => before.get(id) ?? now;
  const isDrained = (node: ObservedNode) => {
    if (!hasServed(node) || node.isDown || hasStopped(node, hosting.delivery)) return true;
    return !node.hasSession && now - sinceOf(node) >= drainMs + silentDrainGraceMs;
  };
  return {
    remaining,
    endings: ending.map((node) => ({ id: node.id, since: sinceOf(node) })),
    deleted: ending.filter(isDrained).map(({ id }) => id),
    hasServed,
  };
}

/** True for a machine that reports that it has stopped, as it was delivered. */
function hasStopped({ id, isStopped, report }: ObservedNode, delivery: Delivery | null): boolean {
  const isDelivered = delivery?.isStopped === true || delivery?.drainedIds?.includes(id) === true;
  return isStopped && isDelivered && report?.generation === delivery.generation;
}

/** True if a machine reports a release to which its front passes requests. */
export function isServing(report: NodeReport | undefined): boolean {
  return (report?.app?.servingReleaseId ?? "") !== "";
}
