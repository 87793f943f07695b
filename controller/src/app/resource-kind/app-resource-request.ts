import { HostedAppAuth } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { AppResourceSpec } from "./app-resource-spec.ts";

/** Amounts of the app that count toward the quotas of its organization. */
export function quotaOf(spec: ResourceSpec): { readonly apps: number; readonly storageGb: number } {
  const { storage_size_gb: sizeGb, replicas } = spec as AppResourceSpec;
  return { apps: 1, storageGb: sizeGb * replicas };
}

/** The fields of a request that choose the size of an app. */
export function sizeRequest({
  plan_name: planName,
  storage_size_gb: storageSizeGb,
  replicas,
  ...spec
}: AppResourceSpec) {
  const { storage_tier: storageTier, zone } = spec;
  return { planName, storageSizeGb, replicas, ...(storageTier && { storageTier }), ...(zone && { zone }) };
}

/** The request for an app that is as the spec. */
export function requestOf(spec: AppResourceSpec) {
  const { image, port, env, secret_env: secretEnv, command, health_check_path: healthCheckPath, auth } = spec;
  return {
    ...sizeRequest(spec),
    imageRef: image,
    port,
    env: { ...env },
    secretEnv: { ...secretEnv },
    command: [...command],
    ...(healthCheckPath !== undefined && { healthCheckPath }),
    ...(auth && { auth: HostedAppAuth.LOGIN_FORM }),
  };
}

/** The members of a spec that a deployment has. */
export function settingsOf(spec: ResourceSpec): ResourceSpec {
  const { image, port, env, secret_env: secretEnv, command, health_check_path: path = null } = spec;
  return { image, port, env: { ...(env as object) }, secretEnv: { ...(secretEnv as object) }, command, path };
}
