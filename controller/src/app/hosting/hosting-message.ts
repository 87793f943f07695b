import type { MessageInitShape } from "@bufbuild/protobuf";
import { AppStatus, HostedAppAuth, type HostedAppSchema } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { DeploymentObject } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";
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

/** The hosted part of an app's message, with the deployment that the app should run and the one that serves. */
export function hostedMessage(
  { spec: { hosting }, status }: HostedApp,
  deployment: DeploymentObject,
  serving: DeploymentObject | undefined,
): MessageInitShape<typeof HostedAppSchema> {
  const { settings } = deployment.spec;
  const { digest, reason, lastLines } = deployment.status;
  const cause = status.hosting.error ?? reason;
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
    deploymentNumber: deployment.spec.number,
    ...(hosting.floatingIp !== undefined && { floatingIp: hosting.floatingIp }),
    auth: hosting.loginForm === undefined ? HostedAppAuth.NONE : HostedAppAuth.LOGIN_FORM,
    ...(serving && {
      servingDeploymentNumber: serving.spec.number,
      servingImageRef: serving.spec.settings.imageRef,
    }),
    servesNewest: status.hosting.servingId === hosting.deploymentId,
    ...(cause !== "" && { reason: cause }),
    lastLines: [...lastLines],
  };
}
