import { Resolver } from "node:dns/promises";
import { hasCode } from "@holdfast/common/system-error.ts";

/** False if name servers respond that the domain has no address; undefined if none responds. */
export type HasAddress = (domain: string, signal: AbortSignal) => Promise<boolean | undefined>;

/** `servers`: addresses with ports, `1.1.1.1:53`; if empty, the host's resolvers are used. */
export function createAddressLookup(servers: readonly string[]): HasAddress {
  return async (domain, signal) => {
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: 2_000, tries: 2 });
    if (servers.length > 0) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const answers = await Promise.all([resolver.resolve4(domain), resolver.resolve6(domain)].map(isFound));
      signal.throwIfAborted();
      if (answers.includes(true)) return true;
      return answers.includes(undefined) ? undefined : false;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}

async function isFound(lookup: Promise<readonly string[]>): Promise<boolean | undefined> {
  try {
    return (await lookup).length > 0;
  } catch (error) {
    return hasCode(error, "ENOTFOUND") || hasCode(error, "ENODATA") ? false : undefined;
  }
}
