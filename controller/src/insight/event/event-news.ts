import type { Clock } from "@holdfast/common/clock.ts";
import type { History } from "#kernel/history/history.ts";

/** Knows which organizations may have new events, by one look at the history for all that follow them. */
export interface EventNews {
  /** A number that is another one once the organization may have new events. */
  version(organizationId: string): number;
}

interface Deps {
  readonly history: Pick<History, "eventsBehind">;
  readonly clock: Clock;
}

const lookEveryMs = 400;
/** Without anybody who asks there is nothing to look for. */
const idleMs = 5_000;
/** With more at a time every follower looks for itself. */
const seenMax = 1_000;
/** Organizations whose versions are kept apart. */
const keptMax = 10_000;

/** It looks only while somebody asks. */
export function createEventNews({ history, clock }: Deps): EventNews {
  /** Everybody's version: it grows when it is not known whose events came. */
  let all = 0;
  let own = new Map<string, number>();
  let behind: string | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  let looking: NodeJS.Timeout | undefined;
  let underWay = false;

  function everybody(): void {
    all += 1 + Math.max(0, ...own.values());
    own = new Map();
  }

  function look(): void {
    if (clock.monotonicMs() - askedAt > idleMs) return stop();
    if (underWay) return;
    underWay = true;
    history
      .eventsBehind(behind, seenMax)
      .then(({ newest, organizationIds }) => {
        // What came before the first look, nobody knows.
        if (behind === undefined || organizationIds.length >= seenMax || own.size > keptMax) everybody();
        else for (const id of new Set(organizationIds)) own.set(id, (own.get(id) ?? 0) + 1);
        behind = newest;
      })
      // Those who follow ask for themselves then, and are told why there is no answer.
      .catch(everybody)
      .finally(() => {
        underWay = false;
      });
  }

  function stop(): void {
    clearInterval(looking);
    looking = undefined;
    behind = undefined;
    everybody();
  }

  return {
    version(organizationId) {
      askedAt = clock.monotonicMs();
      if (looking === undefined) {
        looking = setInterval(look, lookEveryMs);
        looking.unref();
      }
      return behind === undefined ? (all += 1) : all + (own.get(organizationId) ?? 0);
    },
  };
}
