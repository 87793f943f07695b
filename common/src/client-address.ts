import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { list } from "./config.ts";
import { createNetworks, createSourceGroups, plainAddress, type SourceGroups } from "./source-groups.ts";

/** Settings of every process that serves clients, possibly behind proxies. */
export const proxySettings = {
  trustedProxies: list(
    "HOLDFAST_TRUSTED_PROXIES",
    "Addresses and networks (CIDRs) of trusted proxies before the API and the data planes, whose X-Forwarded-For or PROXY protocol headers are used",
  ),
  balancers: list(
    "HOLDFAST_BALANCERS",
    "Networks (CIDRs) of load balancers before the API and the data planes that do not report client addresses: no limit applies to their addresses",
  ),
} as const;

export interface ProxySettings {
  readonly trustedProxies: readonly string[];
  readonly balancers: readonly string[];
}

/** A request with the headers that proxies write. */
interface ForwardedRequest {
  readonly headers: IncomingHttpHeaders;
}

/** The clients of requests, as trusted proxies name them. */
export interface ClientAddresses {
  /** Rate-limit groups of an address; empty for proxies and load balancers, whose address many clients share. */
  readonly sources: SourceGroups;
  /** True if the address belongs to a trusted proxy. */
  isTrusted(address: string): boolean;
  /**
   * Address of the client. It is the peer's address, or, for a trusted proxy, the right-most address in X-Forwarded-For
   * that is not a trusted proxy's. Entries further left are written by clients and never read.
   */
  addressOf(peer: string, request: ForwardedRequest): string;
}

/** Maximum number of proxies in a chain. */
const hopsMax = 16;

/** Throws if an entry is not a network. */
export function createClientAddresses({ trustedProxies, balancers }: ProxySettings): ClientAddresses {
  const isTrusted = createNetworks(trustedProxies);
  return {
    sources: createSourceGroups([...balancers, ...trustedProxies]),
    isTrusted,
    addressOf(socketAddress, { headers }) {
      let peer = plainAddress(socketAddress);
      const header = headers["x-forwarded-for"];
      if (header === undefined || !isTrusted(peer)) return peer;
      const hops = (Array.isArray(header) ? header.join(",") : header).split(",").slice(-hopsMax);
      for (const hop of hops.toReversed()) {
        const address = addressOfHop(hop.trim());
        // A proxy never writes such an entry, so entries to its left are untrusted.
        if (address === undefined) return peer;
        peer = address;
        if (!isTrusted(peer)) return peer;
      }
      return peer;
    },
  };
}

/** Reads an entry with an optional port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function addressOfHop(text: string): string | undefined {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? (/^[\d.]+:\d+$/.test(text) ? text.split(":")[0] : text);
  return bare !== undefined && isIP(bare) !== 0 ? plainAddress(bare) : undefined;
}
