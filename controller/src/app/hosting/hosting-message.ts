import type { MessageInitShape } from "@bufbuild/protobuf";
import { AppStatus, HostedAppAuth, type HostedAppSchema } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { DeploymentObject } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";
import { noHealthyMachine } from "./hosting-plan.ts";
import type { HostingState } from "./hosting-lifecycle.ts";

// biome-ignore format: a table, aligned so that it reads as one
export const appStatuses: Record<HostingState, AppStatus> = {
  Pending:      AppStatus.PENDING,
  Provisioning: AppStatus.PROVISIONING,
  Deploying:    AppStatus.DEPLOYING,
  Running:      AppStatus.RUNNING,
  Error:        AppStatus.ERROR,
  Stopped:      AppStatus.STOPPED,
};

/** The newest deployment of an app if it has failed; undefined otherwise. */
export function newestFailed(
  { spec: { hosting }, status }: HostedApp,
  deployments: (id: string) => DeploymentObject | undefined,
): DeploymentObject | undefined {
  const found = deployments(status.hosting.failedId ?? "");
  const isFailed = found?.metadata.id === status.hosting.failedId && found?.status.state === "failed";
  return isFailed && found.spec.number === hosting.deploymentNumber ? found : undefined;
}

/** Deployments of an app: the one that it should run, the one that serves, and the newest one if that has failed. */
interface AppDeployments {
  readonly desired: DeploymentObject;
  readonly serving: DeploymentObject | undefined;
  readonly failed: DeploymentObject | undefined;
}

/** The hosted part of an app's message. */
export function hostedMessage(
  { spec: { hosting }, status }: HostedApp,
  { desired, serving, failed }: AppDeployments,
): MessageInitShape<typeof HostedAppSchema> {
  const { settings } = desired.spec;
  const { digest } = desired.status;
  const { reason, lastLines } = (failed ?? desired).status;
  const { error, unhealthySince, unhealthyReason } = status.hosting;
  const cause = error ?? (unhealthySince === null ? reason : noHealthyMachine(unhealthyReason));
  return {
    imageRef: settings.imageRef,
    ...(digest !== null && { imageDigest: digest }),
    port: settings.port,
    command: [...settings.command],
    env: { ...settings.environment },
    secretEnvNames: [...settings.secretNames],
    ...(settings.healthCheckPath !== "" && { healthCheckPath: settings.healthCheckPath }),
    startTimeoutSeconds: settings.startTimeoutSeconds,
    drainSeconds: settings.drainSeconds,
    zone: hosting.zone,
    planName: hosting.planName,
    storageSizeGb: hosting.storageSizeGb,
    storageTier: hosting.storageTier,
    replicas: hosting.replicas,
    deploymentNumber: desired.spec.number,
    ...(hosting.floatingIp !== undefined && { floatingIp: hosting.floatingIp }),
    auth: hosting.loginForm === undefined ? HostedAppAuth.NONE : HostedAppAuth.LOGIN_FORM,
    ...(serving && {
      servingDeploymentNumber: serving.spec.number,
      servingImageRef: serving.spec.settings.imageRef,
    }),
    ...(failed && { failedDeploymentNumber: failed.spec.number, failedImageRef: failed.spec.settings.imageRef }),
    servesNewest: failed === undefined && status.hosting.servingId === hosting.deploymentId,
    ...(cause !== "" && { reason: cause }),
    lastLines: [...lastLines],
  };
}
