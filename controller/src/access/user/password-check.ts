import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { hashPurposes, type User } from "../credential/credential.ts";
import { equalHash } from "../equal-hash.ts";
import type { PasswordHash } from "./password-hash.ts";
import type { SignInGuard } from "./sign-in-guard.ts";

/** Tells whether a password is that of a user. */
export interface PasswordCheck {
  /** The user; undefined for an unknown name or a wrong password. Throws RATE_LIMITED after too many failures. */
  verify(name: string, password: string, source: string): Promise<Stored<User> | undefined>;
}

/** What the slow hash said. */
interface Outcome {
  readonly isGood: boolean;
  /** Undefined when there was no such user. */
  readonly userRevision: bigint | undefined;
  readonly until: number;
}

const rememberedMs = 5 * 60_000;
const rememberedMax = 10_000;

/**
 * The slow hash is paid once in five minutes for each person: its result is kept under a keyed hash of name and
 * password, and is void once the stored user has changed, which a watch tells within moments. A wrong password is
 * remembered for the source that tried it: a repetition is no new guess, so it is not counted as one.
 */
export function createPasswordCheck(deps: {
  readonly users: Pick<Collection<User>, "get">;
  readonly hash: PasswordHash;
  readonly guard: SignInGuard;
  readonly sealer: Sealer;
  readonly clock: Clock;
}): PasswordCheck {
  const { users, hash, guard, sealer, clock } = deps;
  const outcomes = new Map<string, Outcome>();
  /** Many requests that come at once pay for one. */
  const checking = new Map<string, Promise<Stored<User> | undefined>>();

  async function slowly(name: string, password: string, source: string, key: string) {
    const attempt = guard.begin(name, source);
    const user = users.get(name);
    const stored = user?.object.spec.passwordHash ?? undefined;
    const good = await hash.verify(stored?.startsWith("$argon2id$") === true ? stored : undefined, password, {
      source,
      isKnown: guard.isKnown(name, source),
    });
    const isGood = good && user !== undefined;
    if (isGood) attempt.succeeded();
    const until = clock.monotonicMs() + rememberedMs;
    outcomes.set(isGood ? key : `${source} ${key}`, { isGood, userRevision: user?.modRevision, until });
    const oldest = outcomes.keys().next();
    if (outcomes.size > rememberedMax && oldest.done !== true) outcomes.delete(oldest.value);
    return isGood ? user : undefined;
  }

  return {
    async verify(name, password, source) {
      const user = users.get(name);
      const key = sealer.keyedHash(hashPurposes.session, `${name}:${password}`);
      const id = `${source} ${key}`;
      const known = outcomes.get(key) ?? outcomes.get(id);
      if (known !== undefined) {
        if (known.userRevision === user?.modRevision && known.until > clock.monotonicMs())
          return known.isGood ? user : undefined;
        outcomes.delete(known.isGood ? key : id);
      }
      // Passwords that the platform made cannot be guessed: their hash is fast, and no sign-in is delayed.
      const presented = sealer.keyedHash(hashPurposes.password, password);
      if (equalHash(user?.object.spec.passwordHash ?? undefined, presented)) return user;
      const running = checking.get(id) ?? slowly(name, password, source, key).finally(() => checking.delete(id));
      checking.set(id, running);
      return running;
    },
  };
}
