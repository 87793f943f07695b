import type { HandlerContext } from "@connectrpc/connect";
import type { Clock } from "@holdfast/common/clock.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createSourceBuckets } from "@holdfast/common/concurrency/source-buckets.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** Limits requests and streams without a credential, by source address. */
export interface PublicRateLimit {
  /** Charges one request; throws RATE_LIMITED if the source exceeds its rate. */
  take(source: string): void;
  /** Opens a stream and returns the function that ends it; throws RATE_LIMITED at the limit of open streams. */
  stream(source: string): () => void;
}

/** PublicRateLimit for gRPC calls. Both methods throw the ConnectError that the caller gets. */
export interface StreamRateLimit {
  /** Charges a call, and each additional message of a stream. */
  take(context: HandlerContext): void;
  /** Opens a stream and returns the function that ends it. */
  stream(context: HandlerContext): () => void;
}

export interface PublicRateLimitOptions {
  /** Requests per second of a source, with a burst of ten times as many; 0: no limit. */
  readonly perSecond: number;
  readonly sources: SourceGroups;
}

const burstS = 10;
/** Maximum number of open streams of one source: health watches and reflection. */
const streamsMax = 16;
const allStreamsMax = 512;

export function createPublicRateLimit({ perSecond, sources }: PublicRateLimitOptions, clock: Clock): PublicRateLimit {
  const buckets = createSourceBuckets({ perSecond, burst: perSecond * burstS, sources }, clock.monotonicMs);
  const streams = createKeyedCounter();

  return {
    take(source) {
      const { waitS, name } = buckets.take(source);
      if (waitS === 0) return;
      throw new HoldfastError("RATE_LIMITED", `${name} sends too many requests without a credential.`, {
        retryAfterS: Math.ceil(waitS),
      });
    },
    stream(source) {
      const limits = sources(source).map(({ name, factor }) => ({ key: name, max: streamsMax * factor }));
      const taken = streams.take([...limits, { key: "", max: allStreamsMax }]);
      if (taken.exceeded === undefined) return taken.release;
      throw new HoldfastError("RATE_LIMITED", "There are too many streams without a credential.", { retryAfterS: 5 });
    },
  };
}
