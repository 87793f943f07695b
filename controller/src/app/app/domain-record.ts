import { Resolver } from "node:dns/promises";
import { domainToASCII } from "node:url";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { DomainSpec } from "./app.ts";

/** Queries DNS for the TXT records of a name, the strings of each joined. Throws if no server responds. */
export type LookUpTxt = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

const name = /^(?=.{3,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$/;

/** The domain in lower case without a trailing dot; undefined if it is invalid, or is below the platform's domain. */
export function domainNameOf(text: string, platformDomain: string): string | undefined {
  const normalized = text.toLowerCase().replace(/\.$/, "");
  const isOwn = normalized === platformDomain || normalized.endsWith(`.${platformDomain}`);
  return name.test(normalized) && !isOwn ? normalized : undefined;
}

/** Detail of the fault of a text that domainNameOf refuses. A name of other alphabets has its form in ASCII. */
export function domainFault(text: string, platformDomain: string): string {
  const ascii = domainToASCII(text);
  const isOtherAlphabet = ascii !== text.toLowerCase() && domainNameOf(ascii, platformDomain) !== undefined;
  return isOtherAlphabet ? `must be in ASCII: ${ascii}` : "must be a domain of yours, such as login.shop.example";
}

/** The DNS record that proves ownership of the domain. */
export function recordOf({ name: domain, token }: Pick<DomainSpec, "name" | "token">) {
  return { type: "TXT", name: `_holdfast.${domain}`, value: `holdfast-domain=${token}` };
}

/** Creates the lookup. `servers` are addresses with ports, `1.1.1.1:53`; if empty, the host's resolvers are used. */
export function createTxtLookup(servers: readonly string[]): LookUpTxt {
  return async (queriedName, signal) => {
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: 2_000, tries: 2 });
    if (servers.length > 0) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return (await resolver.resolveTxt(queriedName)).map((parts) => parts.join(""));
    } catch (error) {
      signal.throwIfAborted();
      if (hasCode(error, "ENOTFOUND") || hasCode(error, "ENODATA")) return [];
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}
