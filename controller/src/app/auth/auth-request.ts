import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { TaskRecord, TaskSource } from "#operation/task/asynchronous-tasks.ts";
import { organizationOf } from "#access/caller.ts";
import type { Collection } from "#kernel/store/collection.ts";

/**
 * A request about an app's users, performed on the primary of their database: after a primary change it is retried on
 * the new primary. It is retained for a day after its end, and callers read it as an asynchronous task.
 */
export type AuthRequestObject = Resource<AuthRequestSpec, AuthRequestStatus>;

/** Maximum number of requests of an app in 24 hours. */
export const requestQuota: Quota<AuthRequestObject> = {
  name: "authRequests",
  label: "requests about its users of the last 24 hours",
  limit: 5_000,
  ownerOf: appOfRequest,
};

export const authRequestKind = defineKind<AuthRequestObject>("app-auth-request", {
  deletedWithOrganization: true,
  indexes: [appOfRequest],
  quotas: [requestQuota],
  storedNames: { "spec.kind": "what" },
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
  | { readonly kind: "revoke"; readonly sessionId: string }
  | { readonly kind: "erase"; readonly userId: string }
  /** `sealedEmail`: the address, sealed with the key of the object; empty after the end of the request. */
  | { readonly kind: "erase"; readonly sealedEmail: string; readonly emailDigest: string };

export interface AuthRequestStatus {
  /** Id of the user or session; null: there is none; absent: not looked up yet. */
  readonly subject?: string | null;
  /** Time of the end in milliseconds since 1970; null while in progress. */
  readonly endedAt: number | null;
  /** True if the user (for an erasure) or session (for a revocation) existed. */
  readonly found: boolean;
  /** Error of a failed request, which callers get; null otherwise. */
  readonly error: string | null;
}

/** Types of tasks in the API. */
export const requestTypes = { revoke: "auth_session_revoke", erase: "auth_user_erase" } as const;

export const requestRetentionMs = 24 * 3_600_000;
/** Time since its creation after which a request fails. */
export const requestTimeoutMs = 24 * 3_600_000;

/** Task sources for requests about an app's users. */
export function authTaskSources(requests: Collection<AuthRequestObject>): TaskSource[] {
  return Object.values(requestTypes).map((type) => ({
    type,
    scope: "apps:data",
    async read({ key }, call) {
      const request = requests.get(key)?.object;
      if (request?.metadata.organizationId !== organizationOf(call)) return undefined;
      return request === undefined || requestTypes[request.spec.kind] !== type ? undefined : recordOf(request);
    },
  }));
}

function recordOf({ metadata, spec, status }: AuthRequestObject): TaskRecord {
  const { endedAt, error, found } = status;
  const result = spec.kind === "erase" ? { erased: found } : { revoked: found };
  return {
    status: endedAt === null ? "running" : error === null ? "completed" : "failed",
    result: endedAt !== null && error === null ? JSON.stringify(result) : undefined,
    error: error === null ? undefined : { code: "engine_refused", message: error },
    createdAt: metadata.createdAt,
    finishedAt: endedAt ?? undefined,
  };
}
