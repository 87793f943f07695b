import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import { hashPurposes, type User } from "../credential/credential.ts";

type NoStatus = Readonly<Record<string, never>>;

/**
 * A sign-in of a user in a browser. The cookie has its secret, `hfb_<id without dashes><secret>`, of which a keyed
 * hash is stored. It belongs to no organization: each call names one by the header Holdfast-Organization.
 */
export type Session = Resource<SessionSpec, NoStatus>;

export interface SessionSpec extends UserBinding {
  readonly secretHash: string;
  readonly expiresAt: number;
  /** Address of the sign-in. */
  readonly source: string;
  /** The User-Agent header of the sign-in. */
  readonly userAgent: string;
  /** The token whose code opened the session: the session has the token's rights, and expires with it. */
  readonly tokenId?: string;
}

/** A one-time code for a sign-in. Its id is the keyed hash of the code. */
export type SessionCode = Resource<SessionCodeSpec, NoStatus>;

export interface SessionCodeSpec extends UserBinding {
  readonly expiresAt: number;
  /** The token that created the code; absent if a user's password or session did. */
  readonly tokenId?: string;
}

/** A user, and the properties whose change ends the user's sessions. */
interface UserBinding {
  readonly userId: string;
  /** Creation time of the user: a later user of the same name does not get the sessions. */
  readonly userSince: number;
  /** The user's token generation at the sign-in, which each change or reset of the password increments. */
  readonly tokenGeneration: number;
}

export const sessionsOfUser = ({ spec }: Session): string => spec.userId;
export const codesOfUser = ({ spec }: SessionCode): string => spec.userId;

export const sessionKind = defineKind<Session>("browser-session", { indexes: [sessionsOfUser] });
export const sessionCodeKind = defineKind<SessionCode>("browser-session-code", { indexes: [codesOfUser] });

/** Time without a call after which a session expires. */
export const sessionIdleTimeoutMs = 12 * 3_600_000;
/** Maximum lifetime of a session. */
export const sessionLifetimeMs = 7 * 86_400_000;
export const codeLifetimeMs = 60_000;
/** Maximum numbers of sessions and codes of a user; one more replaces the oldest. */
export const sessionsMax = 50;
export const codesMax = 10;

export function bindingOf({ metadata, spec }: User): UserBinding {
  return { userId: metadata.id, userSince: metadata.createdAt, tokenGeneration: spec.tokenGeneration ?? 0 };
}

/** True while the user exists and has the password of the sign-in. */
export function isBound(binding: UserBinding, user: Stored<User> | undefined): boolean {
  if (user === undefined) return false;
  const current = bindingOf(user.object);
  return binding.userSince === current.userSince && binding.tokenGeneration === current.tokenGeneration;
}

/** End of a session after its last use, in milliseconds since 1970. */
export function endOf({ metadata, spec }: Session, lastUseAt: number | undefined): number {
  return Math.min(spec.expiresAt, Math.max(metadata.createdAt, lastUseAt ?? 0) + sessionIdleTimeoutMs);
}

/**
 * The CSRF token of a session. It is derived, so that a page gets it again after a reload; only a page that reads
 * responses of this origin has it.
 */
export function csrfTokenOf(sealer: Pick<Sealer, "keyedHash">, { metadata, spec }: Session): string {
  return sealer.keyedHash(hashPurposes.csrf, `${metadata.id} ${spec.secretHash}`);
}
