import { list, text, type ValuesOf } from "@holdfast/common/config.ts";
import { authenticatorPart } from "#access/authenticator.ts";
import { feeds } from "#fleet/running-fleet.ts";
import type { UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Contribution } from "#kernel/part.ts";
import { certificateNames } from "#kernel/pki/local-identities.ts";
import { appKind } from "../app/app.ts";
import { deploymentKind } from "../hosting/deployment.ts";
import { isHosted } from "../hosting/hosted-app.ts";
import { neededDigests } from "./needed-digests.ts";
import { createRegistryAccess } from "./registry-access.ts";
import { createRegistryFeed } from "./registry-feed.ts";

export const registrySettings = {
  registryAddress: text(
    "HOLDFAST_REGISTRY_ADDRESS",
    "host:port at which clients, controllers and the machines of apps reach the registry of images; empty: no hosted apps",
    "",
  ),
  registryNames: list(
    "HOLDFAST_REGISTRY_NAMES",
    "Names and addresses in the certificate of the registry of images, besides localhost",
  ),
} as const;

export type RegistrySettings = ValuesOf<typeof registrySettings>;

/** The stream of the registry, on the listener for agents, and the names of its certificate. */
export function contributeRegistry(
  kernel: Kernel,
  useLater: UseLater,
  { registryNames }: RegistrySettings,
): readonly Contribution[] {
  const apps = kernel.collections.open(appKind);
  const deployments = kernel.collections.open(deploymentKind);
  const authenticator = useLater(authenticatorPart);
  const service = createRegistryFeed({
    ...kernel,
    ready: () => kernel.collections.ready(),
    neededOf: (digests) => neededDigests(deployments.values(), digests),
    accessOf: createRegistryAccess({
      authenticator: { authenticate: (credentials) => authenticator().authenticate(credentials) },
      sealer: kernel.sealer,
      organizationOfApp(id) {
        const app = apps.get(id)?.object;
        return app !== undefined && isHosted(app) ? app.metadata.organizationId : undefined;
      },
    }),
  });
  return [
    feeds.of({ dataPlane: "registry", service }),
    certificateNames.of({ dataPlane: "registry", names: registryNames }),
  ];
}
