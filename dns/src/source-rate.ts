import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { createTokenBuckets } from "@holdfast/common/token-bucket.ts";

/** How many queries one source may send. */
export interface SourceRate {
  /** `truncate` now and then while over the rate, so that a real client there comes back over TCP; otherwise `drop`. */
  admit(address: string): "answer" | "truncate" | "drop";
}

/** Memory stays bounded however many addresses are made up. */
const mostSources = 10_000;
const truncateEvery = 4;
const groupsOf = createSourceGroups();

export function createSourceRate(perSecond: number, monotonicMs: () => number, burst = perSecond * 2): SourceRate {
  const buckets = createTokenBuckets({ perSecond, burst }, monotonicMs, mostSources);
  const refused = new Map<string, number>();
  return {
    admit(address) {
      const source = networkOf(address);
      if (buckets.admits(source, 1)) {
        refused.delete(source);
        return "answer";
      }
      if (refused.size >= mostSources) refused.clear();
      const count = (refused.get(source) ?? 0) + 1;
      refused.set(source, count);
      return count % truncateEvery === 0 ? "truncate" : "drop";
    },
  };
}

/** One customer is one IPv4 address or one IPv6 /56. */
export function networkOf(address: string): string {
  const [own, customer] = groupsOf(address);
  return (customer ?? own)?.name ?? address;
}
