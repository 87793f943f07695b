import type { ControllerConfig } from "../config.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Membership } from "../runtime/membership.ts";
import type { Collection } from "../store/collection.ts";
import { createAddressJudge } from "./address-judge.ts";
import { createEgressClient, type EgressClient } from "./egress-client.ts";
import { ownAddresses } from "./own-addresses.ts";
import { createResolveName } from "./resolve-name.ts";

export interface EgressDeps {
  readonly config: ControllerConfig;
  readonly membership: Pick<Membership, "members">;
  readonly machines: Pick<Collection<MachineObject>, "values">;
}

/** Requests to where users say, but to nothing that is the installation's own. */
export function createEgress({ config, membership, machines }: EgressDeps): EgressClient {
  const { apiListen, agentListen, historyUrl, etcd, dnsServers } = config;
  const own = ownAddresses({
    listeners: [...apiListen, ...agentListen, historyUrl, ...etcd, ...dnsServers],
    members: () => membership.members().flatMap(({ address }) => (address === "" ? [] : [address])),
    loopbackBlock: config.loopbackBlock,
    machineAddresses: () =>
      [...machines.values()].flatMap(({ object: { status } }) => [status.address, status.publicAddress]),
  });
  return createEgressClient({ judge: createAddressJudge(config.allowEgress, own), resolve: createResolveName() });
}
