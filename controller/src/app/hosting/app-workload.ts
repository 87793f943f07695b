import { create } from "@bufbuild/protobuf";
import {
  AppSpecSchema,
  type Release,
  ReleaseSchema,
  type WorkloadSpec,
  WorkloadSpecSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { appKind } from "../app/app.ts";
import { machineCredential } from "../registry/registry-access.ts";
import type { AttachedServices } from "./attached-services.ts";
import type { Delivery } from "./delivery-plan.ts";
import type { DeploymentObject } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";
import { appTerm, frontPort } from "./hosting.ts";
import type { RegistryEndpoint } from "./image-digest.ts";
import { parseImageReference } from "./image-reference.ts";
import type { PlatformApi } from "./platform-api.ts";

export interface AppWorkloadDeps {
  readonly attached: Pick<AttachedServices, "variablesOf">;
  readonly platformApi: Pick<PlatformApi, "variablesOf">;
  readonly sealer: Pick<Sealer, "keyedHash" | "open">;
  readonly registry: RegistryEndpoint;
}

/**
 * The spec of a machine of the app: the releases of the delivery, with everything that the machine needs to run them.
 * Undefined if a deployment is not in memory yet, or its image is not known.
 */
export function appWorkload(
  app: HostedApp,
  delivery: Delivery,
  machine: MachineObject,
  deployments: (id: string) => DeploymentObject | undefined,
  deps: AppWorkloadDeps,
): WorkloadSpec | undefined {
  const releases = delivery.releaseIds.flatMap((id) => {
    const deployment = deployments(id);
    return (deployment && releaseOf(app, deployment, deps)) ?? [];
  });
  if (releases.length < delivery.releaseIds.length) return undefined;
  const { metadata, spec, status } = machine;
  return create(WorkloadSpecSchema, {
    workload: {
      case: "app",
      value: create(AppSpecSchema, {
        releases,
        servingReleaseId: delivery.servingReleaseId,
        port: frontPort,
        endpoints: (delivery.endpoints ?? []).map((each) => ({ ...each, addresses: [...each.addresses] })),
        authorities: deps.registry.authorities(),
      }),
    },
    ownerId: app.metadata.id,
    nodeId: metadata.id,
    generation: BigInt(delivery.generation),
    term: BigInt(appTerm),
    running: delivery.isStopped !== true && delivery.drainedIds?.includes(metadata.id) !== true,
    vcpu: spec.vcpu,
    memoryBytes: BigInt(spec.memoryBytes),
    storageBytes: BigInt(spec.diskBytes),
    address: status.address,
  });
}

function releaseOf(
  app: HostedApp,
  deployment: DeploymentObject,
  { sealer, registry, attached, platformApi }: AppWorkloadDeps,
): Release | undefined {
  const { metadata } = app;
  const { settings } = deployment.spec;
  const { digest } = deployment.status;
  const image = parseImageReference(settings.imageRef, {
    organizationId: metadata.organizationId,
    registry: registry.address,
  });
  if (digest === null || typeof image === "string") return undefined;
  const { username, password } = machineCredential(metadata.id, sealer);
  const variables = {
    PORT: String(settings.port),
    ...attached.variablesOf(app),
    ...platformApi.variablesOf(app),
    ...settings.environment,
    ...openVariables(metadata.id, settings.sealedEnvironment, sealer),
  };
  return create(ReleaseSchema, {
    id: deployment.metadata.id,
    imageRef: `${registry.address}/${image.repository}@${digest}`,
    registryAuthorities: registry.authorities(),
    registryUsername: username,
    registryPassword: password,
    command: [...settings.command],
    environment: Object.entries(variables).map(([name, value]) => ({ name, value })),
    port: settings.port,
    healthCheckPath: settings.healthCheckPath,
    startTimeoutSeconds: settings.startTimeoutSeconds,
    drainSeconds: settings.drainSeconds,
  });
}

/** Seals secret variables, for this app alone; an empty text for none. */
export function sealVariables(
  appId: string,
  variables: Readonly<Record<string, string>>,
  sealer: Pick<Sealer, "seal">,
): string {
  return Object.keys(variables).length === 0 ? "" : sealer.seal(JSON.stringify(variables), keyOf(appKind, appId));
}

export function openVariables(
  appId: string,
  sealed: string,
  sealer: Pick<Sealer, "open">,
): Readonly<Record<string, string>> {
  return sealed === "" ? {} : (JSON.parse(sealer.open(sealed, keyOf(appKind, appId))) as Record<string, string>);
}
