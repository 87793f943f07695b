import { networkInterfaces } from "node:os";
import type { OwnAddresses } from "./address-judge.ts";

/** Where an installation listens and has machines. */
export interface InstallationAddresses {
  /** `host:port`, or URLs, of all that the platform listens on. */
  readonly listeners: readonly string[];
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
  members,
  loopbackBlock,
  machineAddresses,
}: InstallationAddresses): OwnAddresses {
  const fixed = listeners.flatMap((listener) => listenerOf(listener));
  return {
    host: () => Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []),
    listeners: () => [...fixed, ...members().flatMap((member) => listenerOf(member))],
    machineNetworks: () => [`${loopbackBlock}.0.0/16`, ...machineAddresses().filter((address) => address !== "")],
  };
}

function listenerOf(text: string): { host: string; port: number }[] {
  const url = text.includes("://") ? text : `tcp://${text}`;
  if (!URL.canParse(url)) return [];
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === "https:" ? 443 : protocol === "http:" ? 80 : protocol === "postgres:" ? 5432 : 0;
  return [{ host: hostname.replace(/^\[(.*)\]$/, "$1"), port: port === "" ? usual : Number(port) }];
}
