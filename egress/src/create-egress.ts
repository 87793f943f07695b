import { createAddressPolicy } from "./address-policy.ts";
import { createEgressClient, type EgressClient } from "./egress-client.ts";
import { type InstallationAddresses, ownAddresses } from "./own-addresses.ts";
import { createResolveName } from "./resolve-name.ts";

/** Egress clients with different lists of allowed non-public networks. */
export interface Egress {
  /** Client for URLs of users. */
  readonly users: EgressClient;
  /** Client for URLs that operators configure. */
  readonly operators: EgressClient;
  close(): Promise<void>;
}

/**
 * Creates clients for URLs of users and operators, which never connect to the installation itself. Throws if an entry
 * is not a network.
 */
export function createEgress(
  allow: { readonly users: readonly string[]; readonly operators: readonly string[] },
  installation: InstallationAddresses,
): Egress {
  const addresses = ownAddresses(installation);
  const resolve = createResolveName();
  const clientOf = (list: readonly string[]) =>
    createEgressClient({ policy: createAddressPolicy(list, addresses), resolve });
  const users = clientOf(allow.users);
  const operators = clientOf(allow.operators);
  return {
    users,
    operators,
    close: async () => void (await Promise.all([users.close(), operators.close()])),
  };
}
