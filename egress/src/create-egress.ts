import { createAddressJudge } from "./address-judge.ts";
import { createEgressClient, type EgressClient } from "./egress-client.ts";
import { type InstallationAddresses, ownAddresses } from "./own-addresses.ts";
import { createResolveName } from "./resolve-name.ts";

/** The clients, one for each list of networks that are allowed although they are not public. */
export interface Egress {
  /** For URLs of users. */
  readonly users: EgressClient;
  /** For URLs that operators configure. */
  readonly operators: EgressClient;
  close(): Promise<void>;
}

/** Requests to where users and operators say, but to nothing that is the installation's own. Throws for an entry that is no network. */
export function createEgress(
  allow: { readonly users: readonly string[]; readonly operators: readonly string[] },
  installation: InstallationAddresses,
): Egress {
  const own = ownAddresses(installation);
  const resolve = createResolveName();
  const clientOf = (list: readonly string[]) => createEgressClient({ judge: createAddressJudge(list, own), resolve });
  const users = clientOf(allow.users);
  const operators = clientOf(allow.operators);
  return {
    users,
    operators,
    close: async () => void (await Promise.all([users.close(), operators.close()])),
  };
}
