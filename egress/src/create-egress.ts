import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { openListeners } from "@holdfast/common/open-listeners.ts";
import { createAddressPolicy, type OwnAddresses } from "./address-policy.ts";
import { createEgressClient, type EgressClient } from "./egress-client.ts";
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

/** Listeners and machines of an installation. */
interface InstallationAddresses {
  /** `host:port` or URLs of all the platform's listeners; listeners of this process are added. */
  readonly listeners: readonly string[];
  /** Addresses of these listeners that are on no interface of this host, such as addresses of a NAT. */
  readonly addresses: readonly string[];
  /** Current addresses of other controllers, `host:port`. */
  readonly members: () => readonly string[];
  /** First two octets of the addresses of this host's machines. */
  readonly loopbackBlock: string;
  /** Addresses of machines on other hosts. */
  readonly machineAddresses: () => readonly string[];
}

/** Addresses that user requests must not reach. Interfaces can change, so they are read for each request. */
export function ownAddresses({
  listeners,
  addresses,
  members,
  loopbackBlock,
  machineAddresses,
}: InstallationAddresses): OwnAddresses {
  const fixed = listeners.flatMap((listener) => listenerOf(listener));
  return {
    host: () => [
      ...Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []),
      ...addresses,
    ],
    listeners: () => [...fixed, ...openListeners(), ...members().flatMap((member) => listenerOf(member))],
    machineNetworks: () => [`${loopbackBlock}.0.0/16`, ...machineAddresses().filter((address) => address !== "")],
  };
}

/** The listeners, and each of their ports at each of the addresses, for processes on other hosts. */
export function listenersAt(addresses: readonly string[], listeners: readonly string[]): string[] {
  const ports = new Set(listeners.flatMap((listener) => listenerOf(listener).map(({ port }) => port)));
  const hosts = addresses.filter((address) => isIP(address) !== 0);
  return [...new Set([...listeners, ...hosts.flatMap((host) => [...ports].map((port) => endpointText(host, port)))])];
}

const defaultPorts = new Map([
  ["http:", 80],
  ["https:", 443],
  ["postgres:", 5_432],
  ["postgresql:", 5_432],
]);

function listenerOf(text: string): { host: string; port: number }[] {
  const url = text.includes("://") ? text : `tcp://${text}`;
  if (!URL.canParse(url)) return [];
  const { hostname, port, protocol } = new URL(url);
  return [
    {
      host: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? (defaultPorts.get(protocol) ?? 0) : Number(port),
    },
  ];
}
