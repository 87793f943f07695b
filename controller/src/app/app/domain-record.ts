import { Resolver } from "node:dns/promises";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { DomainSpec } from "./app.ts";

/** Asks DNS for the TXT records of a name, each joined to one text. Throws where no server gives an answer. */
export type FindTexts = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

const name = /^(?=.{3,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$/;

/** Pure: a domain as it is kept; undefined for what is none, and for what is below the platform's own. */
export function domainNameOf(text: string, platformDomain: string): string | undefined {
  const kept = text.toLowerCase().replace(/\.$/, "");
  const isOwn = kept === platformDomain || kept.endsWith(`.${platformDomain}`);
  return name.test(kept) && !isOwn ? kept : undefined;
}

/** Pure: the record by which a domain is shown to be the owner's. */
export function recordOf({ name: domain, token }: Pick<DomainSpec, "name" | "token">) {
  return { type: "TXT", name: `_holdfast.${domain}`, value: `holdfast-domain=${token}` };
}

/** `servers` are addresses with ports; without any, those of this host. */
export function createFindTexts(servers: readonly string[]): FindTexts {
  return async (asked, signal) => {
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: 2_000, tries: 2 });
    if (servers.length > 0) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      return (await resolver.resolveTxt(asked)).map((parts) => parts.join(""));
    } catch (error) {
      signal.throwIfAborted();
      if (hasCode(error, "ENOTFOUND") || hasCode(error, "ENODATA")) return [];
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}
