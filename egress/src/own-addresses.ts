import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { endpointText } from "@holdfast/common/endpoint.ts";
import { openListeners } from "@holdfast/common/open-listeners.ts";
import type { OwnAddresses } from "./address-judge.ts";

/** Where an installation listens and has machines. */
export interface InstallationAddresses {
  /** `host:port`, or URLs, of all that the platform listens on; what this process has opened is added. */
  readonly listeners: readonly string[];
  /** Addresses that lead to these listeners although no interface of this host has them, as behind NAT. */
  readonly addresses: readonly string[];
  /** As they come and go: addresses of other controllers, `host:port`. */
  readonly members: () => readonly string[];
  /** First two numbers of the addresses of this host's machines. */
  readonly loopbackBlock: string;
  /** Addresses of machines elsewhere. */
  readonly machineAddresses: () => readonly string[];
}

/** What no user's request may reach. Interfaces of the host can change, so they are read each time. */
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

/** Pure: `host:port` of these listeners, and of their ports at each of the addresses, for processes on other hosts. */
export function listenersAt(addresses: readonly string[], listeners: readonly string[]): string[] {
  const ports = new Set(listeners.flatMap((listener) => listenerOf(listener).map(({ port }) => port)));
  const hosts = addresses.filter((address) => isIP(address) !== 0);
  return [...new Set([...listeners, ...hosts.flatMap((host) => [...ports].map((port) => endpointText(host, port)))])];
}

function listenerOf(text: string): { host: string; port: number }[] {
  const url = text.includes("://") ? text : `tcp://${text}`;
  if (!URL.canParse(url)) return [];
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === "https:" ? 443 : protocol === "http:" ? 80 : protocol === "postgres:" ? 5432 : 0;
  return [{ host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? usual : Number(port) }];
}
