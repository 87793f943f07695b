import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createSourceBuckets } from "@holdfast/common/source-buckets.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** Limits the rate of calls without a credential, by source. */
export interface PublicPace {
  /** Throws RATE_LIMITED for a source that asks too often. */
  take(source: string): void;
  /** A stream, until the function that it answers is called; throws RATE_LIMITED for a source that has too many. */
  stream(source: string): () => void;
}

export interface PublicPaceOptions {
  /** Requests that a source may make in a second, ten times as many at once; 0 for no limit. */
  readonly perSecond: number;
  readonly sources: SourceGroups;
}

const burstS = 10;
/** Streams of a source, and of all: each watcher of health and each reader of descriptors holds one. */
const streamsMax = 16;
const allStreamsMax = 512;

export function createPublicPace({ perSecond, sources }: PublicPaceOptions, clock: Clock): PublicPace {
  const buckets = createSourceBuckets({ perSecond, burst: perSecond * burstS, sources }, clock.monotonicMs);
  const streams = new Map<string, number>();
  let all = 0;

  return {
    take(source) {
      const { waitS, name } = buckets.take(source);
      if (waitS === 0) return;
      throw new HoldfastError("RATE_LIMITED", `${name} asks too often without a credential.`, {
        retryAfterS: Math.ceil(waitS),
      });
    },
    stream(source) {
      const groups = sources(source);
      const full = groups.some(({ name, factor }) => (streams.get(name) ?? 0) >= streamsMax * factor);
      if (full || all >= allStreamsMax)
        throw new HoldfastError("RATE_LIMITED", "There are too many streams without a credential.", { retryAfterS: 5 });
      all += 1;
      for (const { name } of groups) streams.set(name, (streams.get(name) ?? 0) + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        all -= 1;
        for (const { name } of groups) {
          const left = (streams.get(name) ?? 0) - 1;
          if (left > 0) streams.set(name, left);
          else streams.delete(name);
        }
      };
    },
  };
}
