import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  EraseAuthUserSchema,
  ReadAuthRowsSchema,
  RevokeAuthSessionSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { appKind } from "../app/app.ts";
import type { Erasures } from "./erasures.ts";
import {
  type AuthRequestObject,
  authRequestKind,
  type AuthRequestSpec,
  type AuthRequestStatus,
  requestTimeoutMs,
  requestRetentionMs,
} from "./auth-request.ts";

interface Deps {
  readonly requests: Collection<AuthRequestObject>;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly tasks: EngineTasks;
  readonly erasures: Pick<Erasures, "record">;
  readonly sealer: Sealer;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const retryMs = 3_000;

/** Performs each request on the primary of its database, and emits events of erasures. Key: id of the request. */
export function createAuthRequestWork(deps: Deps): ControlLoop {
  const { requests, services, tasks, erasures, sealer, begin, clock, log } = deps;
  const emailOf = (id: string, { sealedEmail }: { readonly sealedEmail: string }) =>
    sealer.open(sealedEmail, keyOf(authRequestKind, id));

  /**
   * Id of the user or session, null if none exists. It is stored first, so that a repeated run announces the same
   * outcome.
   */
  async function subjectOf(
    id: string,
    spec: AuthRequestSpec,
    service: ManagedServiceObject,
    signal: AbortSignal,
  ): Promise<string | null> {
    if (spec.kind === "revoke") return spec.sessionId;
    const user = "userId" in spec ? { userId: spec.userId, email: "" } : { userId: "", email: emailOf(id, spec) };
    const value = create(ReadAuthRowsSchema, { ...user, database: spec.databaseName, table: "users", limit: 1 });
    const { rows } = await tasks.run(service, { case: "readAuthRows", value }, signal);
    return rows[0] === undefined ? null : (JSON.parse(rows[0]) as { id: string }).id;
  }

  /** Performs the request and records the erasure for restored data. Returns true if the subject existed. */
  async function perform(
    { metadata, spec, status }: AuthRequestObject,
    service: ManagedServiceObject,
    signal: AbortSignal,
  ): Promise<boolean> {
    const database = spec.databaseName;
    const { id, organizationId } = metadata;
    if (spec.kind === "revoke") {
      const value = create(RevokeAuthSessionSchema, { database, sessionId: spec.sessionId });
      const { existed } = await tasks.run(service, { case: "revokeAuthSession", value }, signal);
      await erasures.record(organizationId, { kind: "session", subject: spec.sessionId }, clock.now());
      return existed;
    }
    const subjectId = status.subject ?? ("userId" in spec ? spec.userId : undefined);
    const user =
      subjectId !== undefined || "userId" in spec
        ? ({ case: "userId", value: subjectId ?? "" } as const)
        : ({ case: "email", value: emailOf(id, spec) } as const);
    const value = create(EraseAuthUserSchema, { database, user });
    const { erased, userId } = await tasks.run(service, { case: "eraseAuthUser", value }, signal);
    const subject = subjectId ?? (userId === "" ? undefined : userId);
    if (subject !== undefined) await erasures.record(organizationId, { kind: "user", subject }, clock.now());
    return erased || typeof status.subject === "string";
  }

  async function end(
    stored: Stored<AuthRequestObject>,
    outcome: Pick<AuthRequestStatus, "found" | "error">,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const now = clock.now();
    const { metadata, spec } = stored.object;
    const unit = begin();
    unit.update(authRequestKind, stored, {
      metadata: { ...metadata, updatedAt: now },
      spec: "sealedEmail" in spec ? { ...spec, sealedEmail: "" } : spec,
      status: { ...stored.object.status, ...outcome, endedAt: now },
    });
    if (spec.kind === "erase" && outcome.found)
      unit.event({
        type: "auth.user.deleted",
        organizationId: metadata.organizationId,
        objectKind: appKind.name,
        objectId: spec.appId,
        data: "userId" in spec ? { user_id: spec.userId } : { email_digest: spec.emailDigest },
      });
    await requests.untilRevision(await unit.commit(signal), 1_000);
    log.info("request about an app's users ended", { app: spec.appId, kind: spec.kind, found: outcome.found });
    return again(requestRetentionMs, "retained for its caller");
  }

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const stored = await requests.getCurrent(id, signal);
    if (stored === undefined) return settled;
    const { metadata, spec, status } = stored.object;
    const now = clock.now();
    if (status.endedAt !== null) {
      const remainingMs = status.endedAt + requestRetentionMs - now;
      if (remainingMs > 0) return again(remainingMs, "retained for its caller");
      const unit = begin();
      unit.remove(authRequestKind, stored);
      await unit.commit(signal);
      return settled;
    }
    try {
      const service = services.get(spec.serviceId)?.object;
      // The service's data were deleted, and the users with them.
      if (service === undefined) return await end(stored, { found: false, error: null }, signal);
      if (status.subject === undefined) {
        const subject = await subjectOf(id, spec, service, signal);
        const unit = begin();
        unit.update(authRequestKind, stored, { ...stored.object, status: { ...status, subject } });
        await requests.untilRevision(await unit.commit(signal), 1_000);
        return again(1, "the id of the subject is stored");
      }
      return await end(stored, { found: await perform(stored.object, service, signal), error: null }, signal);
    } catch (error) {
      signal.throwIfAborted();
      const isRefused = error instanceof HoldfastError && error.key === "ENGINE_REFUSED";
      if (isRefused || now > metadata.createdAt + requestTimeoutMs)
        return end(
          stored,
          {
            found: false,
            error: error instanceof HoldfastError ? error.detail : "The database did not respond within 24 hours.",
          },
          signal,
        );
      return again(retryMs, "the machine did not respond");
    }
  }

  return {
    reconciler: { name: "app-auth-request", reconcile },
    keys: () => requests.ids(),
    subscribe: (onChange) => requests.subscribe(onChange),
    inputs: (id) => requests.get(id)?.modRevision ?? 0n,
  };
}
