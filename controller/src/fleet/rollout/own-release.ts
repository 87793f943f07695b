import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type AgentRelease, type AgentReleaseDeps, makeAgentRelease } from "./agent-release.ts";
import { offerRelease, type ReleaseOfferDeps } from "./release-offer.ts";

/** The agents that this controller ships. */
export interface OwnRelease {
  /** Makes them, and offers them once; resolves when that is done or the signal is aborted, and never rejects. */
  offer(signal: AbortSignal): Promise<void>;
  /** Has all agents brought to them, whatever they run. */
  offerAgain(record: (unit: UnitOfWork) => void, signal: AbortSignal): Promise<void>;
}

const retryMs = 5_000;

export function createOwnRelease(deps: {
  readonly code: AgentReleaseDeps;
  readonly offer: ReleaseOfferDeps;
  readonly log: Log;
}): OwnRelease {
  let release: AgentRelease | undefined;
  return {
    async offer(signal) {
      while (!signal.aborted) {
        try {
          release ??= await makeAgentRelease(deps.code, signal);
          await offerRelease(release, deps.offer, {}, signal);
          return;
        } catch (error) {
          if (signal.aborted) return;
          deps.log.warn("agents not offered", { reason: error instanceof Error ? error.message : String(error) });
          await sleep(retryMs, undefined, { signal }).catch(() => undefined);
        }
      }
    },
    async offerAgain(record, signal) {
      release ??= await makeAgentRelease(deps.code, signal);
      await offerRelease(release, deps.offer, { force: true, record }, signal);
    },
  };
}
