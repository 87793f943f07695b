import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createSourceGroups, type SourceGroups } from "@holdfast/common/source-groups.ts";

/** Delays attempts to sign in after failures, against guesses. Each replica counts separately, in bounded memory. */
export interface SignInGuard {
  /** True if this source has signed in to the account before. */
  isRecent(account: string, source: string): boolean;
  /** Counts an attempt as failed before it is made, so that concurrent ones all count. Throws RATE_LIMITED. */
  begin(account: string, source: string): Attempt;
}

/** An admitted attempt. */
export interface Attempt {
  /** The password was correct: this attempt no longer counts as failed. Failures of other attempts remain counted. */
  succeeded(): void;
}

/** Sources from which users have signed in, on any replica and before restarts. */
export interface RecentSources {
  has(account: string, source: string): boolean;
  record(account: string, source: string): void;
}

interface Count {
  readonly failures: number;
  readonly at: number;
  readonly until: number;
}

interface Limit {
  /** Number of failures before delays begin. */
  readonly free: number;
  readonly delayMs: (beyond: number) => number;
}

interface Charge {
  readonly key: string;
  readonly limit: Limit;
}

/**
 * One source at one account waits twice as long after each failure, up to a minute; so does one source at many
 * accounts, after more failures. Guesses from many sources at one account share one attempt in two seconds. The last
 * two limits exempt sources from which the user has signed in before, so that an attacker elsewhere cannot lock the
 * user out.
 */
const limits = {
  pair: { free: 5, delayMs: (beyond) => Math.min(60_000, 1_000 * 2 ** Math.min(beyond, 6)) },
  source: { free: 40, delayMs: (beyond) => Math.min(60_000, 1_000 * 2 ** Math.min(beyond, 6)) },
  account: { free: 50, delayMs: () => 2_000 },
} as const satisfies Record<string, Limit>;

const countRetentionMs = 15 * 60_000;
const countsMax = 20_000;

export function createSignInGuard(
  clock: Clock,
  {
    recentSources,
    sources = createSourceGroups(),
  }: { readonly recentSources: RecentSources; readonly sources?: SourceGroups },
): SignInGuard {
  const counts = new Map<string, Count>();

  function remember(key: string, value: Count): void {
    counts.delete(key);
    counts.set(key, value);
    const oldest = counts.keys().next();
    if (counts.size > countsMax && oldest.done !== true) counts.delete(oldest.value);
  }

  /**
   * The counters of an attempt. A load balancer's address is shared, so callers behind it are counted by account only.
   */
  function chargesOf(account: string, source: string): Charge[] {
    const groups = sources(source);
    const [own] = groups;
    const charges: Charge[] = own === undefined ? [] : [{ key: `pair ${account} ${own.name}`, limit: limits.pair }];
    if (own !== undefined && recentSources.has(account, own.name)) return charges;
    for (const { name, factor } of groups)
      charges.push({ key: `source ${name}`, limit: { ...limits.source, free: limits.source.free * factor } });
    return [...charges, { key: `account ${account}`, limit: limits.account }];
  }

  return {
    isRecent(account, source) {
      const [own] = sources(source);
      return own !== undefined && recentSources.has(account, own.name);
    },
    begin(account, source) {
      const now = clock.monotonicMs();
      const charges = chargesOf(account, source);
      const until = Math.max(0, ...charges.map(({ key }) => counts.get(key)?.until ?? 0));
      if (until > now) {
        throw new HoldfastError("RATE_LIMITED", "Too many failed attempts to sign in; wait before the next.", {
          retryAfterS: Math.ceil((until - now) / 1_000),
        });
      }
      for (const { key, limit } of charges) {
        const before = counts.get(key);
        const failures = before === undefined || before.at < now - countRetentionMs ? 1 : before.failures + 1;
        const beyond = failures - limit.free;
        const delayMs = beyond < 0 ? 0 : limit.delayMs(beyond);
        remember(key, { failures, at: now, until: now + delayMs });
      }
      return {
        succeeded() {
          const [own] = sources(source);
          if (own !== undefined) recentSources.record(account, own.name);
          for (const { key, limit } of charges) {
            const count = counts.get(key);
            if (count === undefined) continue;
            const failures = count.failures - 1;
            if (failures <= 0 || limit === limits.pair) counts.delete(key);
            // This attempt caused the delay, which is removed unless another attempt has failed since.
            else counts.set(key, { ...count, failures, until: count.at === now ? now : count.until });
          }
        },
      };
    },
  };
}
