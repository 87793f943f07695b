import type { SourceGroups } from "./source-groups.ts";
import { createTokenBuckets } from "./token-bucket.ts";

/** A bucket for each source and for each larger group of its address, in bounded memory. */
export interface SourceBuckets {
  /** Takes a token of each group of the address, or none of any; the group that has none left, and for how long. */
  take(address: string): SourceTaken;
  /** Gives a token back that was taken for nothing. */
  giveBack(address: string): void;
}

export interface SourceTaken {
  /** Seconds until there would be one; 0 when it was taken. */
  readonly waitS: number;
  /** The source or network that is past its limit; empty when none is. */
  readonly name: string;
}

export interface SourceBucketsOptions {
  /** Of one source; a /56 has four times, and a /48 sixteen times of both. 0 for no limit. */
  readonly perSecond: number;
  readonly burst: number;
  readonly sources: SourceGroups;
}

const factors = [1, 4, 16] as const;

/** An address without a group, which many share, is not limited. */
export function createSourceBuckets(
  { perSecond, burst, sources }: SourceBucketsOptions,
  monotonicMs: () => number,
): SourceBuckets {
  const buckets = new Map<number, ReturnType<typeof createTokenBuckets>>(
    factors.map((factor) => [
      factor,
      createTokenBuckets({ perSecond: perSecond * factor, burst: burst * factor }, monotonicMs),
    ]),
  );
  return {
    take(address) {
      if (perSecond === 0) return { waitS: 0, name: "" };
      const groups = sources(address);
      for (const [at, { name, factor }] of groups.entries()) {
        const waitS = buckets.get(factor)?.take(name, 1).waitS ?? 0;
        if (waitS === 0) continue;
        for (const before of groups.slice(0, at)) buckets.get(before.factor)?.giveBack(before.name, 1);
        return { waitS, name };
      }
      return { waitS: 0, name: "" };
    },
    giveBack(address) {
      for (const { name, factor } of sources(address)) buckets.get(factor)?.giveBack(name, 1);
    },
  };
}
