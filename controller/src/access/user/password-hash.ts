import { hash, verify } from "@node-rs/argon2";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createLane } from "@holdfast/common/lane.ts";
import type { Sealer } from "../../secrets/sealer.ts";
import { hashPurposes } from "../credential/credential.ts";

/** The slow hash of passwords that people choose. Throws RATE_LIMITED when too many wait for it. */
export interface PasswordHash {
  make(password: string): Promise<string>;
  /** `stored` undefined takes as long and is false. */
  verify(stored: string | undefined, password: string): Promise<boolean>;
}

/** Argon2id with 19 MiB and two passes (OWASP's password storage sheet, 2024): about 20 ms of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** Node's pool has four threads, which files and names need too. */
const atOnce = 2;
const mayWait = 64;

/** The secret of the installation goes in as well: what is stolen from the store alone cannot be guessed at. */
export function createPasswordHash(sealer: Sealer): PasswordHash {
  const options = { ...cost, secret: Buffer.from(sealer.keyedHash(hashPurposes.pepper, ""), "hex") };
  const lane = createLane(atOnce);
  let nobody: Promise<string> | undefined;

  async function taking<T>(work: () => Promise<T>): Promise<T> {
    if (lane.waiting >= mayWait)
      throw new HoldfastError("RATE_LIMITED", "Too many passwords are being checked.", { retryAfterS: 2 });
    return lane.run(work);
  }

  return {
    make: (password) => taking(() => hash(password, options)),
    verify: (stored, password) =>
      taking(async () => {
        nobody ??= hash("of nobody", options);
        const same = await verify(stored ?? (await nobody), password, options);
        return same && stored !== undefined;
      }),
  };
}
