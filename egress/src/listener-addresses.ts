import { lookup } from "node:dns/promises";
import { systemClock } from "@holdfast/common/clock.ts";

/** Addresses of a listener that a setting gives by its host name; empty for a name that never resolved. */
export type ListenerAddresses = (name: string) => Promise<readonly string[]>;

interface ListenerAddressesDeps {
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  readonly monotonicMs?: () => number;
}

const cacheMs = 30_000;
const maxNames = 1_000;

/**
 * Resolves with the hosts file, as the platform's own clients of these listeners do. Results are cached for 30 seconds;
 * if a later lookup fails, the previous addresses remain valid.
 */
export function createListenerAddresses({
  resolve = systemAddresses,
  monotonicMs = systemClock.monotonicMs,
}: ListenerAddressesDeps = {}): ListenerAddresses {
  const cache = new Map<string, { readonly addresses: Promise<readonly string[]>; readonly untilMs: number }>();

  return (name) => {
    const cached = cache.get(name);
    if (cached !== undefined && cached.untilMs > monotonicMs()) return cached.addresses;
    if (cached === undefined && cache.size >= maxNames) cache.clear();
    const addresses = resolve(name).catch(() => cached?.addresses ?? []);
    cache.set(name, { addresses, untilMs: monotonicMs() + cacheMs });
    return addresses;
  };
}

async function systemAddresses(name: string): Promise<string[]> {
  return (await lookup(name, { all: true })).map(({ address }) => address);
}
