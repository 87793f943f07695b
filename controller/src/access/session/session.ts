import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import { hashPurposes, type User } from "../credential/credential.ts";

type NoStatus = Readonly<Record<string, never>>;

/**
 * A sign-in of a person in a browser. The cookie has its secret, `hfb_<id without dashes><secret>`, of which a keyed
 * hash is stored. It belongs to no organization: the person chooses one in each call.
 */
export type Session = Resource<SessionSpec, NoStatus>;

export interface SessionSpec extends PersonBinding {
  readonly secretHash: string;
  readonly expiresAt: number;
  /** Address of the sign-in. */
  readonly source: string;
  /** The browser, as it names itself. */
  readonly userAgent: string;
  /** The token whose code opened the session: the session has its rights, and ends with it. */
  readonly tokenId?: string;
}

/** A one-time code for a sign-in. Its id is the keyed hash of the code. */
export type SessionCode = Resource<SessionCodeSpec, NoStatus>;

export interface SessionCodeSpec extends PersonBinding {
  readonly expiresAt: number;
  /** The token that created the code; absent for a person's password or session. */
  readonly tokenId?: string;
}

/** A person, and the state that ends their sessions when it changes. */
interface PersonBinding {
  readonly userId: string;
  /** Creation time of the person: a later person of the same name has none of the sessions. */
  readonly userSince: number;
  /** The person's token generation at the sign-in, which each change or reset of the password increments. */
  readonly tokenGeneration: number;
}

export const sessionsOfUser = ({ spec }: Session): string => spec.userId;
export const codesOfUser = ({ spec }: SessionCode): string => spec.userId;

export const sessionKind = defineKind<Session>("browser-session", { indexes: [sessionsOfUser] });
export const sessionCodeKind = defineKind<SessionCode>("browser-session-code", { indexes: [codesOfUser] });

/** A session ends after this time without a call. */
export const idleMs = 12 * 3_600_000;
/** The longest life of a session. */
export const lifeMs = 7 * 86_400_000;
export const codeMs = 60_000;
/** Sessions of one person, and codes; a further one replaces the oldest. */
export const sessionsMax = 50;
export const codesMax = 10;

export function bindingOf({ metadata, spec }: User): PersonBinding {
  return { userId: metadata.id, userSince: metadata.createdAt, tokenGeneration: spec.tokenGeneration ?? 0 };
}

/** True while the person exists and has the password of the sign-in. */
export function isBound(binding: PersonBinding, user: Stored<User> | undefined): boolean {
  if (user === undefined) return false;
  const current = bindingOf(user.object);
  return binding.userSince === current.userSince && binding.tokenGeneration === current.tokenGeneration;
}

/** End of a session after its last use, in milliseconds since 1970. */
export function endOf({ metadata, spec }: Session, lastUseAt: number | undefined): number {
  return Math.min(spec.expiresAt, Math.max(metadata.createdAt, lastUseAt ?? 0) + idleMs);
}

/**
 * The CSRF token of a session. It is derived, so that a page gets it again after a reload; only a page that reads
 * responses of this origin has it.
 */
export function csrfTokenOf(sealer: Pick<Sealer, "keyedHash">, { metadata, spec }: Session): string {
  return sealer.keyedHash(hashPurposes.csrf, `${metadata.id} ${spec.secretHash}`);
}
