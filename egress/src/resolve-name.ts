import { Resolver } from "node:dns/promises";
import { EgressFailure } from "./egress-failure.ts";

/** The addresses of a name, IPv4 first. Throws EgressFailure `dns` when there is none. */
export type ResolveName = (name: string, signal: AbortSignal) => Promise<string[]>;

/**
 * Asks DNS itself, not the system's resolver: that one waits in a pool of four threads, where a few dead name servers would
 * hold up everything else. The hosts file has no say; `localhost` is loopback (RFC 6761).
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
      const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      signal.throwIfAborted();
      const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (addresses.length > 0) return addresses;
      throw new EgressFailure("dns", "The name does not resolve.");
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}
