import { hash, verify } from "@node-rs/argon2";
import { createSourceGroups, type SourceGroups } from "@holdfast/common/source-groups.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { createPasswordQueue, type PasswordSource } from "./password-queue.ts";
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
