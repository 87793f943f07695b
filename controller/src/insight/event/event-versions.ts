import type { Clock } from "@holdfast/common/clock.ts";
import type { History } from "#kernel/history/history.ts";

/**
 * Detects which organizations may have new events, with one poll of the history for all calls that follow events. Each
 * call compares versions instead of querying. Polling runs only while `version` is called.
 */
export interface EventVersions {
  /** A number that changes when the organization may have new events. */
  version(organizationId: string): number;
}

interface Deps {
  readonly history: Pick<History, "eventsAfter">;
  readonly clock: Clock;
}

const pollIntervalMs = 400;
/** Polling stops this long after the last call of `version`. */
const idleMs = 5_000;
/** Maximum number of events that a poll reads; if there are more, every version changes. */
const batchMax = 1_000;
/** Maximum number of organizations with a separate version; above it all versions are reset. */
const organizationsMax = 10_000;

/** Creates the detector; the first call of `version` starts it. */
export function createEventVersions({ history, clock }: Deps): EventVersions {
  /** Part of every organization's version. It is raised if the organizations of new events are unknown. */
  let common = 0;
  let versions = new Map<string, number>();
  let newestSeen: string | undefined;
  let lastRequestAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let isPolling = false;

  function invalidateAll(): void {
    common += 1 + Math.max(0, ...versions.values());
    versions = new Map();
  }

  function poll(): void {
    if (clock.monotonicMs() - lastRequestAt > idleMs) return stop();
    if (isPolling) return;
    isPolling = true;
    history
      .eventsAfter(newestSeen, batchMax)
      .then(({ newest, organizationIds }) => {
        // Events before the first poll are unknown.
        if (newestSeen === undefined || organizationIds.length >= batchMax || versions.size > organizationsMax)
          invalidateAll();
        else for (const id of new Set(organizationIds)) versions.set(id, (versions.get(id) ?? 0) + 1);
        newestSeen = newest;
      })
      // Followers then query the history and get its error.
      .catch(invalidateAll)
      .finally(() => {
        isPolling = false;
      });
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
    newestSeen = undefined;
    invalidateAll();
  }

  return {
    version(organizationId) {
      lastRequestAt = clock.monotonicMs();
      if (timer === undefined) {
        timer = setInterval(poll, pollIntervalMs);
        timer.unref();
      }
      return newestSeen === undefined ? (common += 1) : common + (versions.get(organizationId) ?? 0);
    },
  };
}
