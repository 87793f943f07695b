import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/**
 * Something that was asked of the users of an app and is done on the primary of their database, however often that changes
 * meanwhile. It is kept for a day after its end, as the task that its caller has the id of.
 */
export type AuthRequestObject = Resource<AuthRequestSpec, AuthRequestStatus>;

/** Of one app within a day. */
export const requestQuota: Quota<AuthRequestObject> = {
  name: "authRequests",
  words: "requests about its users of the last 24 hours",
  limit: 5_000,
  ownerOf: appOfRequest,
};

export const authRequestKind = defineKind<AuthRequestObject>("app-auth-request", {
  goesWithOrganization: true,
  indexes: [appOfRequest],
  quotas: [requestQuota],
});

/** Index: requests of one app. */
export function appOfRequest({ spec }: AuthRequestObject): string {
  return spec.appId;
}

export type AuthRequestSpec = {
  readonly appId: string;
  readonly serviceId: string;
  readonly databaseName: string;
} & AuthWork;

export type AuthWork =
  | { readonly what: "revoke"; readonly sessionId: string }
  | { readonly what: "erase"; readonly userId: string }
  /** The address is sealed with the key of the object, and forgotten at its end. */
  | { readonly what: "erase"; readonly sealedEmail: string; readonly emailDigest: string };

export interface AuthRequestStatus {
  /** Id of the user or the session that was found; null where there was none, absent before anybody looked. */
  readonly subject?: string | null;
  /** Null until it is over. */
  readonly endedAt: number | null;
  /** Of an erasure: was there such a user? Of a revocation: such a session? */
  readonly found: boolean;
  /** Why it cannot be done, in words for the owner; null where it was. */
  readonly error: string | null;
}

/** Types of tasks, as users see them. */
export const requestTypes = { revoke: "auth_session_revoke", erase: "auth_user_erase" } as const;

export const requestKeptMs = 24 * 3_600_000;
/** After this it fails. */
export const requestGivenUpMs = 24 * 3_600_000;
