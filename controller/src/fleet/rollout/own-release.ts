import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type AgentRelease, type AgentReleaseDeps, createAgentRelease } from "./agent-release.ts";
import { offerRelease, type ReleaseOfferDeps } from "./release-offer.ts";

/** The agent release that this controller ships. */
export interface OwnRelease {
  /**
   * Bundles the release and offers it, with retries. Resolves after the offer, or when the signal aborts; never
   * rejects.
   */
  offer(signal: AbortSignal): Promise<void>;
  /**
   * Makes the release the target of the rollout, even if a later release is. `record` adds changes to the transaction.
   */
  offerAgain(record: (unit: UnitOfWork) => void, signal: AbortSignal): Promise<void>;
}

const retryDelayMs = 5_000;

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
          release ??= await createAgentRelease(deps.code, signal);
          await offerRelease(release, deps.offer, {}, signal);
          return;
        } catch (error) {
          if (signal.aborted) return;
          deps.log.warn("agent release not offered", {
            reason: error instanceof Error ? error.message : String(error),
          });
          await sleep(retryDelayMs, undefined, { signal }).catch(() => undefined);
        }
      }
    },
    async offerAgain(record, signal) {
      release ??= await createAgentRelease(deps.code, signal);
      await offerRelease(release, deps.offer, { force: true, record }, signal);
    },
  };
}
