import { isIPv6 } from "node:net";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";

/** Makes guessing passwords slow. Counts are kept by each replica for itself, in memory that is bounded. */
export interface SignInGuard {
  /** Counts a try as failed before it is made, so that many at once are many. Throws RATE_LIMITED. */
  begin(account: string, source: string): void;
  /** The password was right. */
  succeeded(account: string, source: string): void;
}

interface Count {
  readonly failures: number;
  readonly at: number;
  readonly until: number;
}

interface Limit {
  /** Failures that cost nothing. */
  readonly free: number;
  readonly delayMs: (beyond: number) => number;
}

/**
 * One source at one account waits twice as long after each failure, up to a minute; one source at many accounts likewise,
 * later. Guesses from many sources share one try in two seconds for the account. Who has signed in from a source before
 * is held up by neither of the last two, so an attacker elsewhere does not lock the owner out.
 */
const limits = {
  pair: { free: 5, delayMs: (beyond) => Math.min(60_000, 1_000 * 2 ** Math.min(beyond, 6)) },
  source: { free: 40, delayMs: (beyond) => Math.min(60_000, 1_000 * 2 ** Math.min(beyond, 6)) },
  account: { free: 50, delayMs: () => 2_000 },
} as const satisfies Record<string, Limit>;

const forgetMs = 15 * 60_000;
const knownMs = 30 * 86_400_000;
const kept = 20_000;

export function createSignInGuard(clock: Clock): SignInGuard {
  const counts = new Map<string, Count>();
  const known = new Map<string, number>();

  function remember<V>(map: Map<string, V>, key: string, value: V): void {
    map.delete(key);
    map.set(key, value);
    const oldest = map.keys().next();
    if (map.size > kept && oldest.done !== true) map.delete(oldest.value);
  }

  return {
    begin(account, source) {
      const now = clock.monotonicMs();
      const pair = `${account} ${networkOf(source)}`;
      const isKnown = (known.get(pair) ?? -Infinity) > now - knownMs;
      const asked: [keyof typeof limits, string][] = [["pair", pair]];
      if (!isKnown) asked.push(["source", networkOf(source)], ["account", account]);
      const until = Math.max(...asked.map(([name, key]) => counts.get(`${name} ${key}`)?.until ?? 0));
      if (until > now) {
        throw new HoldfastError("RATE_LIMITED", "Too many failed attempts to sign in; wait before the next.", {
          retryAfterS: Math.ceil((until - now) / 1_000),
        });
      }
      for (const [name, key] of asked) {
        const before = counts.get(`${name} ${key}`);
        const failures = before === undefined || before.at < now - forgetMs ? 1 : before.failures + 1;
        const beyond = failures - limits[name].free;
        const delayMs = beyond < 0 ? 0 : limits[name].delayMs(beyond);
        remember(counts, `${name} ${key}`, { failures, at: now, until: now + delayMs });
      }
    },
    succeeded(account, source) {
      const pair = `${account} ${networkOf(source)}`;
      remember(known, pair, clock.monotonicMs());
      counts.delete(`pair ${pair}`);
      for (const key of [`source ${networkOf(source)}`, `account ${account}`]) {
        const count = counts.get(key);
        // This try was none; what others have failed stays counted.
        if (count !== undefined) counts.set(key, { ...count, failures: Math.max(0, count.failures - 1), until: 0 });
      }
    },
  };
}

/** Who has one IPv6 address has its /64. */
function networkOf(source: string): string {
  if (!isIPv6(source)) return source;
  const [head = "", tail] = source.toLowerCase().split("%")[0]?.split("::") ?? [];
  const before = head.split(":").filter((part) => part !== "");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0");
  return [...before, ...zeros, ...after].slice(0, 4).join(":");
}
