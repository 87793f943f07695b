import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { EraseAuthUserSchema, RevokeAuthSessionSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { again, type Outcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { appKind } from "../app/app.ts";
import {
  type AuthRequestObject,
  authRequestKind,
  type AuthRequestSpec,
  type AuthRequestStatus,
  requestGivenUpMs,
  requestKeptMs,
} from "./auth-request.ts";

interface Deps {
  readonly requests: Collection<AuthRequestObject>;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly tasks: EngineTasks;
  readonly sealer: Sealer;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const retryMs = 3_000;

/** Has each request done by the primary of its database, and tells of erasures. Key: id of the request. */
export function createAuthRequestWork({ requests, services, tasks, sealer, begin, clock, log }: Deps): ControlLoop {
  async function done(id: string, spec: AuthRequestSpec, signal: AbortSignal): Promise<boolean> {
    const service = services.get(spec.serviceId)?.object;
    // Its data are gone, and with them whoever was in there.
    if (service === undefined) return false;
    const database = spec.databaseName;
    if (spec.what === "revoke") {
      const value = create(RevokeAuthSessionSchema, { database, sessionId: spec.sessionId });
      return (await tasks.run(service, { case: "revokeAuthSession", value }, signal)).existed;
    }
    const user =
      "userId" in spec
        ? ({ case: "userId", value: spec.userId } as const)
        : ({ case: "email", value: sealer.open(spec.sealedEmail, keyOf(authRequestKind, id)) } as const);
    const value = create(EraseAuthUserSchema, { database, user });
    return (await tasks.run(service, { case: "eraseAuthUser", value }, signal)).erased;
  }

  async function end(
    stored: Stored<AuthRequestObject>,
    outcome: Pick<AuthRequestStatus, "found" | "error">,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const now = clock.now();
    const { metadata, spec } = stored.object;
    const unit = begin();
    unit.update(authRequestKind, stored, {
      metadata: { ...metadata, updatedAt: now },
      spec: "sealedEmail" in spec ? { ...spec, sealedEmail: "" } : spec,
      status: { ...outcome, endedAt: now },
    });
    if (spec.what === "erase" && outcome.found)
      unit.event({
        type: "auth.user.deleted",
        organizationId: metadata.organizationId,
        objectKind: appKind.name,
        objectId: spec.appId,
        data: "userId" in spec ? { user_id: spec.userId } : { email_digest: spec.emailDigest },
      });
    await requests.reached(await unit.commit(signal), 1_000);
    log.info("request of an app's users over", { app: spec.appId, what: spec.what, found: outcome.found });
    return again(requestKeptMs, "it is kept for its caller");
  }

  async function reconcile(id: string, signal: AbortSignal): Promise<Outcome> {
    const stored = await requests.fresh(id, signal);
    if (stored === undefined) return settled;
    const { metadata, spec, status } = stored.object;
    const now = clock.now();
    if (status.endedAt !== null) {
      const leftMs = status.endedAt + requestKeptMs - now;
      if (leftMs > 0) return again(leftMs, "it is kept for its caller");
      const unit = begin();
      unit.remove(authRequestKind, stored);
      await unit.commit(signal);
      return settled;
    }
    try {
      return await end(stored, { found: await done(id, spec, signal), error: null }, signal);
    } catch (error) {
      signal.throwIfAborted();
      const isRefused = error instanceof HoldfastError && error.key === "ENGINE_REFUSED";
      if (isRefused || now > metadata.createdAt + requestGivenUpMs)
        return end(
          stored,
          { found: false, error: error instanceof HoldfastError ? error.detail : "It took too long." },
          signal,
        );
      return again(retryMs, "the machine could not");
    }
  }

  return {
    reconciler: { name: "app-auth-request", reconcile },
    keys: () => requests.ids(),
    subscribe: (onChange) => requests.subscribe(onChange),
    inputs: (id) => requests.get(id)?.modRevision ?? 0n,
  };
}
