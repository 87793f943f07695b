import type { Phase, ResourceObservation, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { DeploymentObject } from "../hosting/deployment.ts";
import type { HostedApp } from "../hosting/hosted-app.ts";
import type { HostingCommands } from "../hosting/hosting-commands.ts";

/**
 * The observation of an app as a resource of a bundle. `actual`: the spec that it has. `failed`: its newest deployment,
 * if that has failed.
 */
export function observationOf(
  app: HostedApp,
  hosting: Pick<HostingCommands, "deployment" | "operation">,
  actual: ResourceSpec,
  failed: DeploymentObject | undefined,
): ResourceObservation {
  const { hosting: status } = app.status;
  const phase = phaseOf(app);
  const healthy = phase === "running" && status.unhealthySince === null;
  const deployment = hosting.deployment(app.spec.hosting.deploymentId);
  const reason = status.error ?? deployment?.status.reason ?? "";
  const progressPct = hosting.operation(status.operationId ?? "")?.status.progressPct;
  return {
    phase,
    healthy,
    detail: healthy ? null : reason || textOf(app),
    ...(failed && { changeFailure: failed.status.reason }),
    progressPct: progressPct ?? (phase === "running" ? 100 : 0),
    actual,
    outputsVersion: "0",
  };
}

function textOf({ metadata: { name }, status: { hosting } }: HostedApp): string {
  const isChanging = hosting.state === "Running" && hosting.operationId !== null;
  return isChanging ? `A change of ${name} is in progress.` : `${name} is ${hosting.state}.`;
}

function phaseOf({ metadata, status: { hosting } }: HostedApp): Phase {
  if (metadata.deletionRequestedAt !== undefined) return "deleting";
  if (hosting.state === "Error") return "failed";
  if (hosting.state === "Running") return hosting.operationId === null ? "running" : "changing";
  return hosting.state === "Stopped" ? "changing" : "creating";
}
