import { completed, failed, isFinished, type OperationObject, progressed } from "#operation/operation.ts";
import type { DeploymentImage } from "./deployment-image.ts";
import type { HostedApp } from "./hosted-app.ts";
import { lineMax } from "./hosting.ts";
import type { HostingPlan } from "./hosting-plan.ts";
import type { ObservedNode } from "./observed-node.ts";

/** The step of a deployment in progress, with its progress in percent and a mark that changes with each progress. */
interface HostingProgress {
  readonly step: string;
  readonly progressPct: number;
  readonly mark: string;
}

/** Progress of a release on one machine, by the state that it reports. */
const percentOf: ReadonlyMap<string, number> = new Map([
  ["pulling", 40],
  ["starting", 60],
  ["ready", 90],
]);

/** The progress of the desired deployment: the step of the machine that is the furthest behind. */
function hostingProgress(
  deploymentId: string,
  { status, created }: HostingPlan,
  nodes: readonly ObservedNode[],
  hasDigest: boolean,
): HostingProgress {
  const present = nodes.filter(({ presence }) => presence === "present");
  const mark = [
    hasDigest,
    status.delivery?.generation ?? 0,
    ...nodes.map(
      ({ id, hasSession, report }) =>
        `${id} ${hasSession} ${report?.app?.releases.find((each) => each.id === deploymentId)?.state ?? ""}`,
    ),
  ].join();
  if (created.length > 0 || present.length === 0 || present.some(({ hasSession }) => !hasSession))
    return { step: "SetupServer", progressPct: 10, mark };
  if (!hasDigest) return { step: "FindImage", progressPct: 30, mark };
  const states = present.map(
    ({ report }) => report?.app?.releases.find((each) => each.id === deploymentId)?.state ?? "pulling",
  );
  if (status.delivery?.isStopped === true) return { step: "StopRelease", progressPct: 50, mark };
  const isServed = present.every(({ report }) => report?.app?.servingReleaseId === deploymentId);
  const progressPct = Math.min(...states.map((state) => percentOf.get(state) ?? 40));
  const step =
    isServed && !status.isPublished
      ? "PublishName"
      : progressPct >= 90
        ? "SwitchRelease"
        : progressPct >= 60
          ? "StartRelease"
          : "PullImage";
  return { step, progressPct, mark };
}

/** The operation after a round: its progress, or its end with the end of the desired deployment. */
export function operationAfter(
  operation: OperationObject,
  app: HostedApp,
  round: {
    readonly plan: HostingPlan;
    readonly nodes: readonly ObservedNode[];
    readonly image: DeploymentImage;
    /** Reason of an operation without progress for too long; undefined while it has time. */
    readonly overdue: string | undefined;
  },
  now: number,
): OperationObject {
  if (isFinished(operation)) return operation;
  const { plan, nodes, image } = round;
  const { result, status } = plan;
  const { replicas } = app.spec.hosting;
  const ends = new Map([
    ["stop", status.state === "Stopped"],
    ["start", status.state === "Running"],
    ["scale", status.nodeIds.length === replicas && status.readyIds.length === replicas],
  ]);
  const isOver = ends.get(operation.spec.type);
  if (isOver === true) return completed(operation, now);
  if (isOver === false && round.overdue !== undefined)
    return failed(operation, { code: "not_in_time", message: round.overdue.slice(0, lineMax) }, now);
  if (isOver === false && plan.event === "deploymentFailed")
    return failed(operation, { code: "deploy_failed", message: (status.error ?? "").slice(0, lineMax) }, now);
  if (isOver === undefined && result?.kind === "serves") return completed(operation, now);
  if (isOver === undefined && result?.kind === "failed")
    return failed(operation, { code: "deploy_failed", message: result.reason.slice(0, lineMax) }, now);
  const progress = hostingProgress(app.spec.hosting.deploymentId, plan, nodes, image.digest !== null);
  return progressed(operation, { ...progress, ...(image.delay !== "" && { obstacle: image.delay }) }, now);
}
