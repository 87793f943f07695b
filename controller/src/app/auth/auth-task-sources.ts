import type { TaskRecord, TaskSource } from "#operation/task/task-source.ts";
import { organizationOf } from "#access/caller.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type AuthRequestObject, requestTypes } from "./auth-request.ts";

/** What became of requests about an app's users, for those who asked. */
export function authTaskSources(requests: Collection<AuthRequestObject>): TaskSource[] {
  return Object.values(requestTypes).map((type) => ({
    type,
    scope: "apps:data",
    async read({ key }, call) {
      const request = requests.get(key)?.object;
      if (request?.metadata.organizationId !== organizationOf(call)) return undefined;
      return request === undefined || requestTypes[request.spec.what] !== type ? undefined : recordOf(request);
    },
  }));
}

function recordOf({ metadata, spec, status }: AuthRequestObject): TaskRecord {
  const { endedAt, error, found } = status;
  const result = spec.what === "erase" ? { erased: found } : { revoked: found };
  return {
    status: endedAt === null ? "running" : error === null ? "completed" : "failed",
    result: endedAt !== null && error === null ? JSON.stringify(result) : undefined,
    error: error === null ? undefined : { code: "engine_refused", message: error },
    createdAt: metadata.createdAt,
    finishedAt: endedAt ?? undefined,
  };
}
