import {
  type Capacity,
  type CapacityRequest,
  createCapacityQueue,
} from "@holdfast/common/concurrency/capacity-queue.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { hash, verify } from "@node-rs/argon2";
import { createSourceGroups, type SourceGroups } from "@holdfast/common/source-groups.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { hashPurposes } from "../credential/credential.ts";

/** The slow hash of passwords that users choose. Throws RATE_LIMITED if too many checks wait. */
export interface PasswordHash {
  create(password: string, presenter: PasswordSource): Promise<string>;
  /** Returns false for an undefined `stored`, after the same time as for a wrong password. */
  verify(stored: string | undefined, password: string, presenter: PasswordSource): Promise<boolean>;
}

/** Argon2id with 19 MiB and two passes (OWASP Password Storage Cheat Sheet, 2024): about 20 ms of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** Node's pool has four threads, also for files and DNS. Checks from unfamiliar sources use one core at most. */
const queueLimits = { concurrency: 2, unfamiliarConcurrency: 1, queueMax: 64, queueMaxPerSource: 4 };

/** The hash includes a secret (pepper) of the installation: hashes stolen from the store alone cannot be cracked. */
export function createPasswordHash(sealer: Sealer, sources: SourceGroups = createSourceGroups()): PasswordHash {
  const options = { ...cost, secret: Buffer.from(sealer.keyedHash(hashPurposes.pepper, ""), "hex") };
  const queue = createPasswordQueue(queueLimits, sources);
  let dummyHash: Promise<string> | undefined;

  return {
    create: (password, presenter) => queue.run(presenter, () => hash(password, options)),
    verify: (stored, password, presenter) =>
      queue.run(presenter, async () => {
        dummyHash ??= hash("of nobody", options);
        const same = await verify(stored ?? (await dummyHash), password, options);
        return same && stored !== undefined;
      }),
  };
}

/** The source from which a password is presented. */
export interface PasswordSource {
  readonly source: string;
  /** True if the user has signed in from this source before. */
  readonly isRecent: boolean;
}

/**
 * The queue before the slow hash. Recent sources have precedence, unfamiliar ones never use all threads, and a single
 * source cannot fill the queue.
 */
export interface PasswordQueue {
  /** Throws RATE_LIMITED if too many checks wait, in total or from this source. */
  run<T>(presenter: PasswordSource, work: () => Promise<T>): Promise<T>;
}

interface Limits {
  readonly concurrency: number;
  /** The part of `concurrency` for unfamiliar sources. */
  readonly unfamiliarConcurrency: number;
  /** Maximum number of waiting checks of recent sources, and the same number of unfamiliar ones. */
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

  async function wait({ source, isRecent }: PasswordSource): Promise<Capacity> {
    const ofSource = sources(source).map(({ name, factor }) => ({ key: name, max: queueMaxPerSource * factor }));
    const place = waiting.take([{ key: isRecent ? "recent" : "unfamiliar", max: queueMax }, ...ofSource]);
    if (place.exceeded !== undefined)
      throw new HoldfastError("RATE_LIMITED", "Too many passwords are being checked; try again in 2 s.", {
        retryAfterS: 2,
      });
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
