import {
  type Capacity,
  type CapacityRequest,
  createCapacityQueue,
} from "@holdfast/common/concurrency/capacity-queue.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";

/** The source of a password. */
export interface Presenter {
  readonly source: string;
  /** True when the person has signed in from there before. */
  readonly isRecent: boolean;
}

/**
 * The queue before the slow hash. Recent sources go first, unfamiliar ones never use all of its threads, and no source
 * can fill it alone.
 */
export interface PasswordQueue {
  /** Throws RATE_LIMITED when too many wait, overall or of this source. */
  run<T>(presenter: Presenter, work: () => Promise<T>): Promise<T>;
}

interface Limits {
  readonly concurrency: number;
  /** The part of `concurrency` for unfamiliar sources. */
  readonly unfamiliarConcurrency: number;
  /** Most waiting checks of recent sources, and as many of unfamiliar ones. */
  readonly queueMax: number;
  readonly queueMaxPerSource: number;
}

export function createPasswordQueue(limits: Limits, sources: SourceGroups): PasswordQueue {
  const { concurrency, unfamiliarConcurrency, queueMax, queueMaxPerSource } = limits;
  const checks = createCapacityQueue();
  const waiting = createKeyedCounter();

  function requestOf(isRecent: boolean): CapacityRequest {
    const all = { key: "all", max: concurrency };
    const unfamiliar = { key: "unfamiliar", max: unfamiliarConcurrency };
    return { limits: isRecent ? [all] : [all, unfamiliar], isUrgent: isRecent };
  }

  async function wait({ source, isRecent }: Presenter): Promise<Capacity> {
    const ofSource = sources(source).map(({ name, factor }) => ({ key: name, max: queueMaxPerSource * factor }));
    const place = waiting.take([{ key: isRecent ? "recent" : "unfamiliar", max: queueMax }, ...ofSource]);
    if (place.exceeded !== undefined)
      throw new HoldfastError("RATE_LIMITED", "Too many passwords are being checked.", { retryAfterS: 2 });
    try {
      return await checks.acquire(requestOf(isRecent));
    } finally {
      place.release();
    }
  }

  return {
    async run(who, work) {
      const capacity = checks.tryAcquire(requestOf(who.isRecent)) ?? (await wait(who));
      try {
        return await work();
      } finally {
        capacity.release();
      }
    },
  };
}
