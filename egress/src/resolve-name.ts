import { Resolver } from "node:dns/promises";
import { EgressFailure } from "./egress-failure.ts";

/** Resolves a name to its addresses, IPv4 first. Throws EgressFailure `dns` if there are none. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>;

/**
 * Queries DNS directly instead of the system's resolver, whose pool of four threads a few unresponsive name servers
 * would block. The hosts file is ignored; `localhost` is loopback (RFC 6761).
 */
export function createResolveName({ servers }: { readonly servers?: readonly string[] } = {}): ResolveName {
  return async (name, signal) => {
    signal.throwIfAborted();
    if (/(^|\.)localhost\.?$/i.test(name)) return ["127.0.0.1", "::1"];
    const resolver = new Resolver({ timeout: 2_000, tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const lookups = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      signal.throwIfAborted();
      const addresses = lookups.flatMap((lookup) => (lookup.status === "fulfilled" ? lookup.value : []));
      if (addresses.length > 0) return addresses;
      throw new EgressFailure("dns", "The name does not resolve.");
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}
