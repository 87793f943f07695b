import type { ManagedService } from "@holdfast/sdk/responses.ts";

const readLimit = 200;
/** Most pages of services that a search reads; beyond them it finds whole names alone. */
const maxPages = 5;
/** Most services that a search returns. */
const maxFound = 50;

/** A list of services by pages: `services` of a client. */
interface ServiceSource {
  list(
    filter: { readonly name?: string },
    options: { readonly signal: AbortSignal; readonly limit?: number },
  ): {
    pages(): AsyncIterable<{ readonly entries: readonly ManagedService[] }>;
    toArray(): Promise<ManagedService[]>;
  };
}

/** The services whose names contain a text, in any case. */
export async function findServices(
  services: ServiceSource,
  text: string,
  signal: AbortSignal,
): Promise<readonly ManagedService[]> {
  const part = text.trim().toLowerCase();
  const found: ManagedService[] = [];
  let pages = 0;
  for await (const { entries } of services.list({}, { signal, limit: readLimit }).pages()) {
    found.push(...entries.filter(({ name }) => name.toLowerCase().includes(part)));
    pages += 1;
    if (pages === maxPages || found.length >= maxFound) break;
  }
  if (pages === maxPages && !found.some(({ name }) => name === part))
    found.unshift(...(await services.list({ name: part }, { signal }).toArray()));
  return found.slice(0, maxFound);
}
