import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { sharedKeyOf } from "../payload/payloads.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AgentRelease } from "./agent-release.ts";
import {
  type AgentRollout,
  agentRolloutKind,
  isLater,
  newRollout,
  payloadIdOf,
  rolloutId,
  withRelease,
} from "./agent-rollout.ts";

export interface ReleaseOfferDeps {
  readonly rollouts: Pick<Collection<AgentRollout>, "fresh" | "reached">;
  readonly objects: ObjectStore;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Makes the release the one that all agents are brought to, unless a later one is that already, or it was that before: while
 * controllers of two versions run, the newer one's agents win, and stay. `force` makes it that all the same. Answers
 * whether it is now; `record` adds to the transaction that makes it so.
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
  const wanted = { release: release.release, digest, payloadId, sha256, sizeBytes: bytes.byteLength };
  return retryConflict(signal, async () => {
    const stored = await rollouts.fresh(rolloutId, signal);
    const before = stored?.object.spec;
    if (before?.digest === digest) return true;
    if (before !== undefined && !force) {
      const known = before.replaced.includes(digest);
      if (isLater(before.release, release.release) || (known && !isLater(release.release, before.release))) {
        log.info("agents stay with another release", { release: before.release, digest: before.digest, own: digest });
        return false;
      }
    }
    // The bytes are there before anybody is told of them.
    await objects.put(sharedKeyOf(payloadId), whole(bytes), { signal });
    const unit = begin();
    const now = clock.now();
    if (stored === undefined) unit.create(agentRolloutKind, newRollout(wanted, now));
    else unit.update(agentRolloutKind, stored, withRelease(stored.object, wanted, now));
    record?.(unit);
    await rollouts.reached(await unit.commit(signal), 10_000);
    log.info("agents are brought to a release", { release: release.release, digest });
    // What machines may still be fetching is the one before; older ones nobody names.
    for (const old of before?.replaced ?? []) if (old !== digest) await objects.delete(sharedKeyOf(payloadIdOf(old)));
    return true;
  });
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
