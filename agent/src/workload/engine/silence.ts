/** How long an engine has not responded to checks. */
export interface Silence {
  /** The engine responded, or nothing is expected of it. */
  end(): void;
  /** A check ended without a response. */
  continue(): void;
  /** True if the engine has been silent for longer than a harmless pause plus one check. */
  isLong(): boolean;
}

interface SilenceDeps {
  readonly monotonicMs: () => number;
  /** Longest time of a check and the rest before the next. */
  readonly longestRoundMs: number;
}

const longMs = 5_000;

/**
 * A longer round is a pause of this process, such as that of its machine, in which nothing asked the engine, or the
 * engine was paused too. Only the time of one round counts: with all of it, a primary that continues after a pause
 * would report its healthy engine as silent, and a failover would begin.
 */
export function createSilence({ monotonicMs, longestRoundMs }: SilenceDeps): Silence {
  let earlierMs = 0;
  let roundStartedMs = monotonicMs();
  const untilNowMs = () => earlierMs + Math.min(monotonicMs() - roundStartedMs, longestRoundMs);
  return {
    end() {
      earlierMs = 0;
      roundStartedMs = monotonicMs();
    },
    continue() {
      earlierMs = untilNowMs();
      roundStartedMs = monotonicMs();
    },
    isLong: () => untilNowMs() > longMs,
  };
}
