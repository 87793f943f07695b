import { networkInterfaces } from "node:os";
import { createAddressJudge } from "@holdfast/egress/address-judge.ts";
import { createEgressClient, type EgressClient } from "@holdfast/egress/egress-client.ts";
import { ownAddresses } from "@holdfast/egress/own-addresses.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";
import type { Configuration } from "./configuration/configuration.ts";

/** Connections to providers: to public addresses and those that operators allow, never to what is the platform's own. */
export function createProxyEgress(
  allow: readonly string[],
  listens: readonly string[],
  configuration: Pick<Configuration, "refusals">,
): EgressClient {
  const listenersOf = (all: readonly string[]) =>
    ownAddresses({
      listeners: all,
      addresses: [],
      members: () => [],
      loopbackBlock: "127.255",
      machineAddresses: () => [],
    }).listeners();
  const mine = listenersOf(listens);
  let known = configuration.refusals;
  let theirs = listenersOf(known.listeners);
  const judge = createAddressJudge(allow, {
    host: () => Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []),
    listeners() {
      if (known !== configuration.refusals) {
        known = configuration.refusals;
        theirs = listenersOf(known.listeners);
      }
      return [...mine, ...theirs];
    },
    machineNetworks: () => configuration.refusals.networks,
  });
  return createEgressClient({ judge, resolve: createResolveName() });
}
