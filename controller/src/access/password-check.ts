import type { Clock } from "@holdfast/common/clock.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import { hashPurposes, type User } from "./credential.ts";
import { equalHash } from "./equal-hash.ts";
import type { PasswordHash } from "./password-hash.ts";
import type { SignInGuard } from "./sign-in-guard.ts";

/** Tells whether a password is that of a user. */
export interface PasswordCheck {
  /** The user; undefined when there is none or the password is wrong. Throws RATE_LIMITED after too many failures. */
  verify(name: string, password: string, source: string): Promise<Stored<User> | undefined>;
}

interface Session {
  readonly userRevision: bigint;
  readonly until: number;
}

const sessionMs = 5 * 60_000;
const sessionsMax = 10_000;

/**
 * The slow hash is paid once in five minutes for each person: what it said is remembered under a keyed hash of name and
 * password, and is worth nothing once the stored user has changed, which a watch tells within moments.
 */
export function createPasswordCheck(deps: {
  readonly users: Collection<User>;
  readonly hash: PasswordHash;
  readonly guard: SignInGuard;
  readonly sealer: Sealer;
  readonly clock: Clock;
}): PasswordCheck {
  const { users, hash, guard, sealer, clock } = deps;
  const sessions = new Map<string, Session>();
  /** Many requests that come at once pay for one. */
  const checking = new Map<string, Promise<Stored<User> | undefined>>();

  async function slowly(name: string, password: string, source: string, key: string) {
    guard.begin(name, source);
    const user = users.get(name);
    const stored = user?.object.spec.passwordHash ?? undefined;
    const good = await hash.verify(stored?.startsWith("$argon2id$") === true ? stored : undefined, password);
    if (!good || user === undefined) return undefined;
    guard.succeeded(name, source);
    sessions.set(key, { userRevision: user.modRevision, until: clock.monotonicMs() + sessionMs });
    const oldest = sessions.keys().next();
    if (sessions.size > sessionsMax && oldest.done !== true) sessions.delete(oldest.value);
    return user;
  }

  return {
    async verify(name, password, source) {
      const user = users.get(name);
      const key = sealer.keyedHash(hashPurposes.session, `${name}:${password}`);
      const session = sessions.get(key);
      if (session !== undefined) {
        if (session.userRevision === user?.modRevision && session.until > clock.monotonicMs()) return user;
        sessions.delete(key);
      }
      // Passwords of the platform's making cannot be guessed: their hash is fast, and nobody has to wait.
      const presented = sealer.keyedHash(hashPurposes.password, password);
      if (equalHash(user?.object.spec.passwordHash ?? undefined, presented)) return user;
      const id = `${source} ${key}`;
      const running = checking.get(id) ?? slowly(name, password, source, key).finally(() => checking.delete(id));
      checking.set(id, running);
      return running;
    },
  };
}
