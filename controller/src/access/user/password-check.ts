import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { hashPurposes, type User } from "../credential/credential.ts";
import { equalHash } from "../equal-hash.ts";
import type { PasswordHash } from "./password-hash.ts";
import type { SignInGuard } from "./sign-in-guard.ts";

/** Checks passwords of users. */
export interface PasswordCheck {
  /** The user; undefined for an unknown name or a wrong password. Throws RATE_LIMITED after too many failures. */
  verify(name: string, password: string, source: string): Promise<Stored<User> | undefined>;
}

/** Result of the slow hash. */
interface Outcome {
  readonly isValid: boolean;
  /** Undefined if there was no such user. */
  readonly userRevision: bigint | undefined;
  readonly until: number;
}

const cacheMs = 5 * 60_000;
const cacheMax = 10_000;

/**
 * The slow hash is computed once in five minutes per user: its result is cached under a keyed hash of name and
 * password, and is void once the stored user has changed. A wrong password is cached for the source that tried it: a
 * repetition is not a new guess, so it is not counted as one.
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
  /** Checks in progress: concurrent requests with one password share one. */
  const checking = new Map<string, Promise<Stored<User> | undefined>>();

  async function hashAndCheck(name: string, password: string, source: string, key: string) {
    const attempt = guard.begin(name, source);
    const user = users.get(name);
    const stored = user?.object.spec.passwordHash ?? undefined;
    const matches = await hash.verify(stored?.startsWith("$argon2id$") === true ? stored : undefined, password, {
      source,
      isRecent: guard.isRecent(name, source),
    });
    const isValid = matches && user !== undefined;
    if (isValid) attempt.succeeded();
    const until = clock.monotonicMs() + cacheMs;
    outcomes.set(isValid ? key : `${source} ${key}`, { isValid, userRevision: user?.modRevision, until });
    const oldest = outcomes.keys().next();
    if (outcomes.size > cacheMax && oldest.done !== true) outcomes.delete(oldest.value);
    return isValid ? user : undefined;
  }

  return {
    async verify(name, password, source) {
      const user = users.get(name);
      const key = sealer.keyedHash(hashPurposes.passwordCache, `${name}:${password}`);
      const id = `${source} ${key}`;
      const cached = outcomes.get(key) ?? outcomes.get(id);
      if (cached !== undefined) {
        if (cached.userRevision === user?.modRevision && cached.until > clock.monotonicMs())
          return cached.isValid ? user : undefined;
        outcomes.delete(cached.isValid ? key : id);
      }
      // Generated passwords cannot be guessed: their hash is fast, and the guard does not delay them.
      const presented = sealer.keyedHash(hashPurposes.password, password);
      if (equalHash(user?.object.spec.passwordHash ?? undefined, presented)) return user;
      const running = checking.get(id) ?? hashAndCheck(name, password, source, key).finally(() => checking.delete(id));
      checking.set(id, running);
      return running;
    },
  };
}
