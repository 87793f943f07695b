import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createSourceGroups, type SourceGroups } from "@holdfast/common/source-groups.ts";

/** Makes guessing passwords slow. Counts are kept by each replica for itself, in memory that is bounded. */
export interface SignInGuard {
  /** Has this source signed in to the account before? */
  isKnown(account: string, source: string): boolean;
  /** Counts a try as failed before it is made, so that many at once are many. Throws RATE_LIMITED. */
  begin(account: string, source: string): Attempt;
}

/** A try that was let through. */
export interface Attempt {
  /** The password was right: this attempt was no failure. Failures of others stay counted. */
  succeeded(): void;
}

/** Sources that people have signed in from, on any replica and before its start. */
export interface KnownSources {
  has(account: string, source: string): boolean;
  note(account: string, source: string): void;
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

interface Asked {
  readonly key: string;
  readonly limit: Limit;
}

/**
 * One source at one account waits twice as long after each failure, up to a minute; one source at many accounts
 * likewise, later. Guesses from many sources share one attempt in two seconds for the account. The last two limits
 * exempt sources from which the person has signed in before, so an attacker elsewhere does not lock the owner out.
 */
const limits = {
  pair: { free: 5, delayMs: (beyond) => Math.min(60_000, 1_000 * 2 ** Math.min(beyond, 6)) },
  source: { free: 40, delayMs: (beyond) => Math.min(60_000, 1_000 * 2 ** Math.min(beyond, 6)) },
  account: { free: 50, delayMs: () => 2_000 },
} as const satisfies Record<string, Limit>;

const forgetMs = 15 * 60_000;
const kept = 20_000;

export function createSignInGuard(
  clock: Clock,
  { known, sources = createSourceGroups() }: { readonly known: KnownSources; readonly sources?: SourceGroups },
): SignInGuard {
  const counts = new Map<string, Count>();

  function remember(key: string, value: Count): void {
    counts.delete(key);
    counts.set(key, value);
    const oldest = counts.keys().next();
    if (counts.size > kept && oldest.done !== true) counts.delete(oldest.value);
  }

  /**
   * The counters that an attempt charges. A balancer's address is shared, so callers behind it are told apart by their
   * accounts alone.
   */
  function askedOf(account: string, source: string): Asked[] {
    const groups = sources(source);
    const [own] = groups;
    const asked: Asked[] = own === undefined ? [] : [{ key: `pair ${account} ${own.name}`, limit: limits.pair }];
    if (own !== undefined && known.has(account, own.name)) return asked;
    for (const { name, factor } of groups)
      asked.push({ key: `source ${name}`, limit: { ...limits.source, free: limits.source.free * factor } });
    return [...asked, { key: `account ${account}`, limit: limits.account }];
  }

  return {
    isKnown(account, source) {
      const [own] = sources(source);
      return own !== undefined && known.has(account, own.name);
    },
    begin(account, source) {
      const now = clock.monotonicMs();
      const asked = askedOf(account, source);
      const until = Math.max(0, ...asked.map(({ key }) => counts.get(key)?.until ?? 0));
      if (until > now) {
        throw new HoldfastError("RATE_LIMITED", "Too many failed attempts to sign in; wait before the next.", {
          retryAfterS: Math.ceil((until - now) / 1_000),
        });
      }
      for (const { key, limit } of asked) {
        const before = counts.get(key);
        const failures = before === undefined || before.at < now - forgetMs ? 1 : before.failures + 1;
        const beyond = failures - limit.free;
        const delayMs = beyond < 0 ? 0 : limit.delayMs(beyond);
        remember(key, { failures, at: now, until: now + delayMs });
      }
      return {
        succeeded() {
          const [own] = sources(source);
          if (own !== undefined) known.note(account, own.name);
          for (const { key, limit } of asked) {
            const count = counts.get(key);
            if (count === undefined) continue;
            const failures = count.failures - 1;
            if (failures <= 0 || limit === limits.pair) counts.delete(key);
            // The wait was this try's own, and goes with it, unless others have failed meanwhile.
            else counts.set(key, { ...count, failures, until: count.at === now ? now : count.until });
          }
        },
      };
    },
  };
}
