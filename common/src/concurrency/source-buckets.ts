import type { SourceGroups } from "../source-groups.ts";
import { createTokenBuckets, takeTokens, type TokenBuckets } from "./token-buckets.ts";

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
  const byFactor = new Map<number, TokenBuckets>(
    factors.map((factor) => [
      factor,
      createTokenBuckets({ perSecond: perSecond * factor, burst: burst * factor }, monotonicMs),
    ]),
  );
  const sharesOf = (address: string) =>
    sources(address).flatMap(({ name, factor }) => {
      const buckets = byFactor.get(factor);
      return buckets === undefined ? [] : { buckets, name, tokens: 1 };
    });
  return {
    take(address) {
      if (perSecond === 0) return { waitS: 0, name: "" };
      const taken = takeTokens(sharesOf(address));
      return taken.exceeded === undefined ? { waitS: 0, name: "" } : { waitS: taken.waitS, name: taken.exceeded.name };
    },
    refund(address) {
      for (const { buckets, name } of sharesOf(address)) buckets.refund(name, 1);
    },
  };
}
