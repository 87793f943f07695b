import { randomBytes } from "node:crypto";
import type { ResourceName } from "@holdfast/common/call.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { defineKind } from "#kernel/store/kind.ts";

type NoStatus = Readonly<Record<string, never>>;

/** A key of an organization. Its id is `hfk_...`; only a keyed hash of the secret is stored. */
export type ApiKey = Resource<ApiKeySpec, NoStatus>;

export const apiKeyKind = defineKind<ApiKey>("api-key", {
  deletedWithOrganization: true,
  quotas: [{ name: "apiKeys", label: "API keys", limit: 200 }],
});

/** The creator of the credentials of the bootstrap file. */
export const bootstrapActor = "installation";

export interface ApiKeySpec {
  readonly secretHash: string;
  readonly scopes: readonly string[];
  readonly expiresAt: number | null;
  /** The secret before the last rotation, and the end of its overlap. */
  readonly previous?: { readonly secretHash: string; readonly expiresAt: number };
  /** The creator, as the audit log names it. */
  readonly createdBy?: string;
}

/**
 * An opaque bearer token, `hft_<id without dashes><secret>`. A token of the bootstrap file has another format; the
 * keyed hash of the whole token is its id.
 */
export type Token = Resource<TokenSpec, NoStatus>;

export const tokenKind = defineKind<Token>("token", {
  deletedWithOrganization: true,
  // The number of owners is limited by their own quotas.
  quotas: [
    { name: "tokens", label: "tokens", limit: 1_000, amountOf: ({ spec }) => (spec.owner === undefined ? 1 : 0) },
  ],
  storedNames: { "spec.creator": "maker" },
});

export interface TokenSpec {
  /** Absent when the id is the hash. */
  readonly secretHash?: string;
  readonly scopes: readonly string[];
  readonly expiresAt: number | null;
  /** The objects that it may access; absent: everything of the organization. */
  readonly resources?: readonly ResourceName[];
  /** The creator; absent for the token of the bootstrap file, and for one with an owner. */
  readonly creator?: TokenCreator;
  /** The object whose program has the token, such as a hosted app; the token is deleted with it. */
  readonly owner?: { readonly kind: string; readonly id: string; readonly name: string };
}

/** The creator of a token, which limits its scopes: a token whose creator was deleted is not valid. */
export interface TokenCreator {
  readonly kind: "user" | "api_key" | "token";
  readonly id: string;
  /** The creator, as the audit log names it. */
  readonly actor: string;
  /**
   * Creation time of the user's membership: a later member of the same name, or the same user after rejoining, does not
   * get these tokens. Absent for keys and tokens, and for tokens from before the field existed.
   */
  readonly memberSince?: number;
  /** The user's token generation at the authentication of the creating call; absent for 0. */
  readonly tokenGeneration?: number;
  /** Number of tokens between this token and the key or user at the root. */
  readonly depth: number;
}

/** A user, or the operator of the host. Its id is the user name; its organization is the one that created it. */
export type User = Resource<UserSpec, NoStatus>;

export const userKind = defineKind<User>("user", {
  globalNames: "users sign in by it, before an organization is known",
  quotas: [{ name: "users", label: "users", limit: 400 }],
});

export interface UserSpec {
  /**
   * Argon2id in PHC string format; or a keyed hash of a generated password of at least 128 random bits. Null until the
   * user has set a password.
   */
  readonly passwordHash: string | null;
  /** True for platform operators, who are created on the host only. */
  readonly operator: boolean;
  /**
   * Incremented by each reset or change of the password, which voids all earlier tokens of the user. Absent for 0.
   */
  readonly tokenGeneration?: number;
  /** The one-time token with which the user sets a password; `expiresAt` in milliseconds since 1970. */
  readonly setup?: { readonly tokenHash: string; readonly expiresAt: number };
}

/**
 * The next token generation, which voids the user's tokens: an attacker with the old password may have created some.
 */
export function nextTokenGeneration({ tokenGeneration = 0 }: UserSpec): Required<Pick<UserSpec, "tokenGeneration">> {
  return { tokenGeneration: tokenGeneration + 1 };
}

/**
 * Writes the user unchanged, so that concurrent transactions conflict: a deletion and a new membership, or two new
 * organizations of one user.
 */
export function touchUser(unit: Changes, user: Stored<User>, now: number): void {
  const { object } = user;
  unit.update(userKind, user, { ...object, metadata: { ...object.metadata, updatedAt: now } });
}

/** Time and source of a credential's last use. Its id is the id of the key, token or session. */
export type CredentialUse = Resource<{ readonly at: number; readonly source: string }, NoStatus>;

export const credentialUseKind = defineKind<CredentialUse>("credential-use", { deletedWithOrganization: true });

/** Additional scopes of platform operators. */
export const operatorScopes: readonly string[] = ["platform:*"];

/** Purposes of keyed hashes (`Sealer.keyedHash`). */
export const hashPurposes = {
  apiKey: "api-key-secret",
  token: "token",
  password: "password",
  setup: "setup-token",
  passwordCache: "password-session",
  pepper: "password-pepper",
  source: "sign-in-source",
  browserSession: "browser-session",
  sessionCode: "session-code",
  csrf: "session-csrf",
} as const;

const format = /^(hf[a-z]_)([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})[A-Za-z0-9_-]{32}$/;

/** Prefixes of secrets that contain the id of their object. */
type SecretPrefix = "hft_" | "hfb_";

/** A bearer token, or the secret of a session: the id, by which it is found, and 192 random bits. */
export function newSecretText(prefix: SecretPrefix, id: string): string {
  return `${prefix}${id.replaceAll("-", "")}${randomBytes(24).toString("base64url")}`;
}

/** The id in a secret with the prefix; undefined for text of another format. */
export function idOfSecretText(prefix: SecretPrefix, text: string): string | undefined {
  const [, found, ...parts] = format.exec(text) ?? [];
  return found === prefix ? parts.join("-") : undefined;
}

/** The one-time token with which a user sets a password, `hfu_<user name in base64url>.<secret>`. */
export function newSetupToken(userId: string): string {
  return `hfu_${Buffer.from(userId).toString("base64url")}.${randomBytes(24).toString("base64url")}`;
}

/** The user name in a setup token, not verified; undefined for any other text. */
export function userOfSetupToken(text: string): string | undefined {
  const name = /^hfu_([A-Za-z0-9_-]{1,96})\.[A-Za-z0-9_-]{32}$/.exec(text)?.[1];
  return name === undefined ? undefined : Buffer.from(name, "base64url").toString("utf8");
}
