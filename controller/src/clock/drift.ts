import type { Clock } from "@holdfast/common/clock.ts";

/** Compares the wall clock with the monotonic one. */
export interface Drift {
  /** How far they drifted apart since they were last taken as right, when it is over a minute; then that is taken as right. */
  check(): number | undefined;
}

const allowedMs = 60_000;
/** Clocks that are slewed into place drift a little all the time: what is allowed is allowed anew each hour. */
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
