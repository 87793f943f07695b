import type { SourceGroups } from "./source-groups.ts";
import { createTokenBuckets } from "./token-bucket.ts";

/** Token buckets for each source and for each larger group of its address, in bounded memory. */
export interface SourceBuckets {
  /** Takes a token of every group of the address, or none at all. Names the exhausted group and the wait. */
  take(address: string): SourceTakeResult;
  /** Returns a token that was not used. */
  refund(address: string): void;
}

export interface SourceTakeResult {
  /** Seconds until a token is available; 0 if it was taken. */
  readonly waitS: number;
  /** The exhausted source or network; empty if there is none. */
  readonly name: string;
}

export interface SourceBucketsOptions {
  /** Rate of one source. A /56 has four times and a /48 sixteen times the rate and burst. 0 disables the limit. */
  readonly perSecond: number;
  readonly burst: number;
  readonly sources: SourceGroups;
}

const factors = [1, 4, 16] as const;

/** An address without groups, which many clients share, is not limited. */
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
        for (const before of groups.slice(0, at)) buckets.get(before.factor)?.refund(before.name, 1);
        return { waitS, name };
      }
      return { waitS: 0, name: "" };
    },
    refund(address) {
      for (const { name, factor } of sources(address)) buckets.get(factor)?.refund(name, 1);
    },
  };
}
