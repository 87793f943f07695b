import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { createTokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";

/** Rate limit of queries by source. */
export interface QueryRateLimit {
  /**
   * `answer` below the rate. Above the rate `truncate` for each fourth query, so that a real client retries over TCP,
   * and `drop` for the others.
   */
  admit(address: string): "answer" | "truncate" | "drop";
}

/** Maximum number of sources, which bounds memory against forged addresses. */
const maxSources = 10_000;
const queriesPerTruncation = 4;
const groupsOf = createSourceGroups();

export function createQueryRateLimit(
  perSecond: number,
  monotonicMs: () => number,
  burst = perSecond * 2,
): QueryRateLimit {
  const buckets = createTokenBuckets({ perSecond, burst }, monotonicMs, maxSources);
  const refused = new Map<string, number>();
  return {
    admit(address) {
      const source = networkOf(address);
      if (buckets.admits(source, 1)) {
        refused.delete(source);
        return "answer";
      }
      if (refused.size >= maxSources) refused.clear();
      const count = (refused.get(source) ?? 0) + 1;
      refused.set(source, count);
      return count % queriesPerTruncation === 0 ? "truncate" : "drop";
    },
  };
}

/** The network of one customer: an IPv4 address or an IPv6 /56. */
export function networkOf(address: string): string {
  const [host, customer] = groupsOf(address);
  return (customer ?? host)?.name ?? address;
}
