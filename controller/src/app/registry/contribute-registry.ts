import { list, type ValuesOf } from "@holdfast/common/config.ts";
import { authenticatorPart } from "#access/authenticator.ts";
import { feeds } from "#fleet/running-fleet.ts";
import type { UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Contribution } from "#kernel/part.ts";
import { certificateNames } from "#kernel/pki/local-identities.ts";
import { createRegistryAccess } from "./registry-access.ts";
import { createRegistryFeed } from "./registry-feed.ts";

export const registrySettings = {
  registryNames: list(
    "HOLDFAST_REGISTRY_NAMES",
    "Names and addresses in the certificate of the registry of images, besides localhost",
  ),
} as const;

/** The stream of the registry, on the listener for agents, and the names of its certificate. */
export function contributeRegistry(
  kernel: Kernel,
  useLater: UseLater,
  { registryNames }: ValuesOf<typeof registrySettings>,
): readonly Contribution[] {
  const authenticator = useLater(authenticatorPart);
  const service = createRegistryFeed({
    ...kernel,
    ready: () => kernel.collections.ready(),
    accessOf: createRegistryAccess({
      authenticator: { authenticate: (credentials) => authenticator().authenticate(credentials) },
      sealer: kernel.sealer,
      // No app runs on machines yet.
      organizationOfApp: () => undefined,
    }),
  });
  return [
    feeds.of({ dataPlane: "registry", service }),
    certificateNames.of({ dataPlane: "registry", names: registryNames }),
  ];
}
