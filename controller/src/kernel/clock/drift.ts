import type { Clock } from "@holdfast/common/clock.ts";

/** Compares the wall clock with the monotonic one. */
export interface Drift {
  /**
   * How far the clocks drifted apart since the last reference, when that is over a minute; that moment is then the new
   * reference.
   */
  check(): number | undefined;
}

const allowedMs = 60_000;
/** Clocks that are slewed into place drift a little all the time: the allowance is renewed each hour. */
const forgiveMs = 3_600_000;

export function createDrift(clock: Clock): Drift {
  let wall = clock.now();
  let monotonic = clock.monotonicMs();
  return {
    check() {
      const passed = clock.monotonicMs() - monotonic;
      const drift = clock.now() - wall - passed;
      const apart = Math.abs(drift) > allowedMs;
      if (apart || passed > forgiveMs) {
        wall = clock.now();
        monotonic = clock.monotonicMs();
      }
      return apart ? drift : undefined;
    },
  };
}
