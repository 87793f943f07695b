import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { sharedKeyOf } from "../payload/payloads.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type AgentRelease, type AgentReleaseDeps, createAgentRelease } from "./agent-release.ts";
import {
  type AgentRollout,
  agentRolloutKind,
  isLater,
  newRollout,
  payloadIdOf,
  rolloutId,
  withRelease,
} from "./agent-rollout.ts";

interface ReleaseOfferDeps {
  readonly rollouts: Pick<Collection<AgentRollout>, "getCurrent" | "untilRevision">;
  readonly objects: ObjectStore;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Makes the release the target of the rollout, unless a later release is, or the release was replaced before: while
 * controllers of two versions run, the release of the newer version is chosen and remains. `force` skips these checks.
 * `record` adds changes to the transaction. Returns true if the release is the target.
 */
export async function offerRelease(
  release: AgentRelease,
  { rollouts, objects, begin, clock, log }: ReleaseOfferDeps,
  options: { force?: boolean; record?: (unit: UnitOfWork) => void },
  signal: AbortSignal,
): Promise<boolean> {
  const { force = false, record } = options;
  const { digest, bytes, sha256 } = release;
  const payloadId = payloadIdOf(digest);
  const offered = { release: release.release, digest, payloadId, sha256, sizeBytes: bytes.byteLength };
  return retryConflict(signal, async () => {
    const stored = await rollouts.getCurrent(rolloutId, signal);
    const before = stored?.object.spec;
    if (before?.digest === digest) return true;
    if (before !== undefined && !force) {
      const wasReplaced = before.replaced.includes(digest);
      if (isLater(before.release, release.release) || (wasReplaced && !isLater(release.release, before.release))) {
        log.info("agent release not offered: another release remains the target", {
          release: before.release,
          digest: before.digest,
          own: digest,
        });
        return false;
      }
    }
    // The package is stored before any machine gets a task to download it.
    await objects.put(sharedKeyOf(payloadId), singleChunk(bytes), { signal });
    const unit = begin();
    const now = clock.now();
    if (stored === undefined) unit.create(agentRolloutKind, newRollout(offered, now));
    else unit.update(agentRolloutKind, stored, withRelease(stored.object, offered, now));
    record?.(unit);
    await rollouts.untilRevision(await unit.commit(signal), 10_000);
    log.info("agent release offered", { release: release.release, digest });
    // Machines may still download the package of the previous release; older ones are not in use.
    for (const old of before?.replaced ?? []) if (old !== digest) await objects.delete(sharedKeyOf(payloadIdOf(old)));
    return true;
  });
}

async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

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
