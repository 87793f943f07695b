import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { list } from "./config.ts";
import { createNetworks, createSourceGroups, plainAddress, type SourceGroups } from "./source-groups.ts";

/** Settings of each process that serves clients, which may be behind proxies. */
export const proxySettings = {
  trustedProxies: list(
    "HOLDFAST_TRUSTED_PROXIES",
    "Addresses and networks (CIDRs) of proxies before the API and the data planes whose X-Forwarded-For, or PROXY protocol header, is believed",
  ),
  balancers: list(
    "HOLDFAST_BALANCERS",
    "Networks (CIDRs) of balancers before the API and the data planes that say nothing of clients: many callers share their addresses, so nothing is limited by them",
  ),
} as const;

export interface ProxySettings {
  readonly trustedProxies: readonly string[];
  readonly balancers: readonly string[];
}

/** A request with the headers that proxies write. */
interface Forwarded {
  readonly headers: IncomingHttpHeaders;
}

/** The clients of requests, as trusted proxies name them. */
export interface ClientAddresses {
  /** The groups that an address is limited in; none for proxies and balancers, whose address many share. */
  readonly sources: SourceGroups;
  /** Is this the address of a trusted proxy? */
  isTrusted(address: string): boolean;
  /**
   * The address of the client: the peer's, or the right-most one of X-Forwarded-For that is no trusted proxy's, where the peer is one.
   * Entries that a client itself puts into the header are to the left of that, and never read.
   */
  of(peer: string, request: Forwarded): string;
}

/** A chain of proxies is no longer than this. */
const hopsMax = 16;

/** Throws for an entry that is no network. */
export function createClientAddresses({ trustedProxies, balancers }: ProxySettings): ClientAddresses {
  const isTrusted = createNetworks(trustedProxies);
  return {
    sources: createSourceGroups([...balancers, ...trustedProxies]),
    isTrusted,
    of(socketAddress, { headers }) {
      let peer = plainAddress(socketAddress);
      const header = headers["x-forwarded-for"];
      if (header === undefined || !isTrusted(peer)) return peer;
      const hops = (Array.isArray(header) ? header.join(",") : header).split(",").slice(-hopsMax);
      for (const hop of hops.toReversed()) {
        const address = addressOfHop(hop.trim());
        // No proxy writes this, so entries to its left are not read.
        if (address === undefined) return peer;
        peer = address;
        if (!isTrusted(peer)) return peer;
      }
      return peer;
    },
  };
}

/** Some proxies write a port too: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressOfHop(text: string): string | undefined {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? (/^[\d.]+:\d+$/.test(text) ? text.split(":")[0] : text);
  return bare !== undefined && isIP(bare) !== 0 ? plainAddress(bare) : undefined;
}
