import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient, type EgressClient } from "@holdfast/egress/egress-client.ts";
import { ownAddresses } from "@holdfast/egress/create-egress.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";
import type { Configuration } from "./configuration/configuration.ts";

/** Egress client for providers: public addresses and those that operators allow, never the platform's own. */
export function createProxyEgress(
  allow: readonly string[],
  listens: readonly string[],
  configuration: Pick<Configuration, "refusals">,
): EgressClient {
  const platformAddresses = ownAddresses({
    listeners: listens,
    addresses: [],
    members: () => configuration.refusals.listeners,
    loopbackBlock: "127.255",
    machineAddresses: () => [],
  });
  const policy = createAddressPolicy(allow, {
    ...platformAddresses,
    machineNetworks: () => configuration.refusals.networks,
  });
  return createEgressClient({ policy, resolve: createResolveName() });
}
