import { hash, verify } from "@node-rs/argon2";
import { createSourceGroups, type SourceGroups } from "@holdfast/common/source-groups.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { createPasswordLine, type Presenter } from "./password-line.ts";
import { hashPurposes } from "../credential/credential.ts";

/** The slow hash of passwords that people choose. Throws RATE_LIMITED when too many wait for it. */
export interface PasswordHash {
  make(password: string, who: Presenter): Promise<string>;
  /** `stored` undefined takes as long and is false. */
  verify(stored: string | undefined, password: string, who: Presenter): Promise<boolean>;
}

/** Argon2id with 19 MiB and two passes (OWASP's password storage sheet, 2024): about 20 ms of one core. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** Node's pool has four threads, which files and names need too. Guesses from many sources together keep one core busy at most. */
const lineLimits = { atOnce: 2, othersAtOnce: 1, mayWait: 64, mayWaitOfSource: 4 };

/** The hash includes a secret of the installation: hashes stolen from the store alone cannot be cracked. */
export function createPasswordHash(sealer: Sealer, sources: SourceGroups = createSourceGroups()): PasswordHash {
  const options = { ...cost, secret: Buffer.from(sealer.keyedHash(hashPurposes.pepper, ""), "hex") };
  const line = createPasswordLine(lineLimits, sources);
  let nobody: Promise<string> | undefined;

  return {
    make: (password, who) => line.run(who, () => hash(password, options)),
    verify: (stored, password, who) =>
      line.run(who, async () => {
        nobody ??= hash("of nobody", options);
        const same = await verify(stored ?? (await nobody), password, options);
        return same && stored !== undefined;
      }),
  };
}
