import type { ResourceName } from "@holdfast/common/call.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { defineKind } from "#kernel/store/kind.ts";

type NoStatus = Readonly<Record<string, never>>;

/** A key of an organization. Id `hfk_...`; the secret is kept as a keyed hash only. */
export type ApiKey = Resource<ApiKeySpec, NoStatus>;

export const apiKeyKind = defineKind<ApiKey>("api-key", {
  goesWithOrganization: true,
  quotas: [{ name: "apiKeys", words: "API keys", limit: 200 }],
});

export interface ApiKeySpec {
  readonly secretHash: string;
  readonly scopes: readonly string[];
  readonly expiresAt: number | null;
  /** The secret before the last rotation, for as long as it works on. */
  readonly previous?: { readonly secretHash: string; readonly expiresAt: number };
  /** The maker, as the audit log names it. */
  readonly createdBy?: string;
}

/**
 * An opaque bearer, `hft_<id without dashes><secret>`. Tokens of the bootstrap file have another form, and the keyed
 * hash of the whole is their id.
 */
export type Token = Resource<TokenSpec, NoStatus>;

export const tokenKind = defineKind<Token>("token", {
  goesWithOrganization: true,
  quotas: [{ name: "tokens", words: "tokens", limit: 1_000 }],
});

export interface TokenSpec {
  /** Absent when the id is the hash. */
  readonly secretHash?: string;
  readonly scopes: readonly string[];
  readonly expiresAt: number | null;
  /** All that it may touch; absent for everything of the organization. */
  readonly resources?: readonly ResourceName[];
  /** Absent for the one of the bootstrap file. */
  readonly maker?: Maker;
}

/** Whom a token may not outlive or outrank. */
export interface Maker {
  readonly kind: "user" | "api_key" | "token";
  readonly id: string;
  /** As the audit log names them. */
  readonly actor: string;
  /**
   * When the person's membership began: a later member of the same name, or the same person on return, has none of
   * these tokens. Absent for keys and tokens, and for tokens of older versions.
   */
  readonly memberSince?: number;
  /** Of the person, as it was when the token was made; absent for 0. */
  readonly tokenGeneration?: number;
  /** How many tokens are between this one and a key or a person. */
  readonly depth: number;
}

/** A person, or the operator of the host. Id is the user name; the organization is the one that made it. */
export type User = Resource<UserSpec, NoStatus>;

export const userKind = defineKind<User>("user", {
  globalNames: "people sign in by it, before an organization is known",
  quotas: [{ name: "users", words: "users", limit: 400 }],
});

export interface UserSpec {
  /**
   * Argon2id in its own text form; or a keyed hash, of a password that the platform made with at least 128 random bits.
   * Null until the person has set one.
   */
  readonly passwordHash: string | null;
  /** Platform operators are made on the host only. */
  readonly operator: boolean;
  /** Raised by each reset and each change of the password: tokens of an earlier one are over. Absent for 0. */
  readonly tokenGeneration?: number;
  /** The one-time token that sets the first password. */
  readonly setup?: { readonly tokenHash: string; readonly expiresAt: number };
}

/** Ends the tokens that the person made: another holder of the password may have made some. */
export function nextTokenGeneration({ tokenGeneration = 0 }: UserSpec): Required<Pick<UserSpec, "tokenGeneration">> {
  return { tokenGeneration: tokenGeneration + 1 };
}

/**
 * Writes the person again as they were read: a deletion and a membership that is made at once collide, and so do two
 * organizations that one person makes at once.
 */
export function touchUser(unit: UnitOfWork, user: Stored<User>, now: number): void {
  const { object } = user;
  unit.update(userKind, user, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}

/** When a credential was last used and from where. Id is that of the key or token. */
export type CredentialUse = Resource<{ readonly at: number; readonly source: string }, NoStatus>;

export const credentialUseKind = defineKind<CredentialUse>("credential-use", { goesWithOrganization: true });

/** What a platform operator may do besides. */
export const operatorScopes: readonly string[] = ["platform:*"];

/** Purposes of keyed hashes. */
export const hashPurposes = {
  apiKey: "api-key-secret",
  token: "token",
  password: "password",
  setup: "setup-token",
  session: "password-session",
  pepper: "password-pepper",
  source: "sign-in-source",
} as const;
