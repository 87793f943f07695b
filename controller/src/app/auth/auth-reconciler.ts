import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { checkMailServer, MailServerFailure } from "@holdfast/egress/mail-server.ts";
import { PrepareAuthSchemaSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ZoneRecords } from "#fleet/zone/zone-records.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import { managedServiceKind, type ManagedServiceObject } from "#services/service/managed-service.ts";
import {
  afterEvent,
  authKind,
  type AuthObject,
  type AuthStatus,
  type AuthStep,
  changedAuth,
  hostOf,
  serviceOfAuth,
  dataIdOf,
} from "./auth.ts";
import { authEvent } from "./auth-events.ts";
import { replayErasures } from "./replay-erasures.ts";
import type { Erasures } from "./erasures.ts";
import type { AuthEvent } from "./auth-lifecycle.ts";
import { issuerUrlOf } from "./auth-message.ts";
import { planAuth } from "./auth-plan.ts";
import { type AuthSecrets, mailServerOf } from "./auth-secrets.ts";
import { type IssuerEndpoints, isServedByIssuers } from "./issuer-probe.ts";
import { retireDue } from "./signing-keys.ts";

export interface AuthWorkDeps {
  readonly auths: Collection<AuthObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly zone: ZoneRecords;
  readonly tasks: EngineTasks;
  readonly secrets: AuthSecrets;
  readonly erasures: Pick<Erasures, "since">;
  readonly egress: Pick<EgressClient, "connect">;
  readonly issuers: IssuerEndpoints;
  /** Networks (CIDRs) of the issuers. */
  readonly issuersFrom: readonly string[];
  readonly trust: () => string;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

const retryMs = 1_000;
const mailMs = 15_000;
const recordTtlS = 30;

/** Converges the sign-in of each app. Key: id of the app. */
export function createAuthWork(deps: AuthWorkDeps): ControlLoop {
  const { auths, services, zone, tasks, secrets, begin, clock, log, issuers, issuersFrom } = deps;
  const ownerOf = ({ metadata }: AuthObject) => ({ kind: authKind.name, id: metadata.id });

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const auth = await auths.getCurrent(id, signal);
    if (auth === undefined) return settled;
    const service = services.get(auth.object.spec.serviceId);
    const records = zone.of(ownerOf(auth.object));
    const plan = planAuth(auth.object, {
      now: clock.now(),
      service: service && {
        isRunning: service.object.status.state === "Running",
        grantsAccess: grantsAccess(service.object, auth.object, issuersFrom),
        data: dataIdOf(service.object, auth.object),
      },
      hasName: records.some(({ metadata }) => metadata.id === auth.object.spec.fallbackDomain),
    });
    switch (plan.kind) {
      case "step":
        return step(plan.step, auth, service, signal);
      case "provisioned":
        return move(auth, "provisioned", null, signal);
      case "fail":
        return move(auth, "stuck", plan.message, signal);
      case "retireKeys": {
        const keys = retireDue(auth.object.spec.keys, clock.now());
        return keys === undefined ? settled : write(auth, changedAuth(auth.object, { keys }, clock.now()), signal);
      }
      case "health":
        return write(auth, withStatus(auth.object, { health: { reason: plan.reason, since: clock.now() } }), signal);
      case "withdraw": {
        const unit = begin();
        zone.remove(unit, ownerOf(auth.object));
        if (service !== undefined && grantsAccess(service.object, auth.object, issuersFrom))
          unit.update(managedServiceKind, service, withAccess(service.object, auth.object, undefined));
        return committed(unit, signal);
      }
      case "settled":
        return plan.recheckMs === undefined ? settled : again(Math.min(plan.recheckMs, 3_600_000), "a key retires");
    }
  }

  async function step(
    name: AuthStep,
    auth: Stored<AuthObject>,
    service: Stored<ManagedServiceObject> | undefined,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { metadata, spec } = auth.object;
    if (service === undefined) return again(retryMs, "the service is not in the collection");
    try {
      switch (name) {
        case "access": {
          const unit = begin();
          unit.update(managedServiceKind, service, withAccess(service.object, auth.object, issuersFrom));
          return await committed(unit, signal);
        }
        case "schema": {
          const verifier = secrets.open(metadata.id, spec.sealedVerifier);
          const value = create(PrepareAuthSchemaSchema, { database: spec.databaseName, role: spec.role, verifier });
          const { version } = await tasks.run(service.object, { case: "prepareAuthSchema", value }, signal);
          return await completeStep(auth, name, signal, { schemaVersion: version });
        }
        case "erasures": {
          const data = dataIdOf(service.object, auth.object);
          const counts = await replayErasures(deps, auth.object, service.object, data, signal);
          if (counts.erased + counts.revoked > 0) log.info("erasures replayed", { app: metadata.id, ...counts });
          return await completeStep(auth, name, signal, { replayedDataId: data });
        }
        case "mail": {
          const server = mailServerOf(metadata.id, spec.smtp, secrets);
          await checkMailServer(server, { egress: deps.egress, deadlineMs: mailMs }, signal);
          return await completeStep(auth, name, signal);
        }
        case "name": {
          const unit = begin();
          const record = { name: spec.fallbackDomain, addresses: issuers.addresses, ttlS: recordTtlS };
          zone.put(unit, ownerOf(auth.object), [record]);
          return await committed(unit, signal);
        }
        case "issuer": {
          const host = hostOf(spec);
          const url = issuerUrlOf(host, issuers.port);
          if (!(await isServedByIssuers(issuers, host, url, deps.trust(), signal)))
            return again(retryMs, "an issuer does not serve the host yet");
          return await completeStep(auth, name, signal);
        }
      }
    } catch (error) {
      signal.throwIfAborted();
      const message = refusalOf(error);
      if (message !== undefined && auth.object.status.state === "ProvisioningSchema")
        return move(auth, "refused", `${name}: ${message}`, signal);
      log.debug("step of a sign-in failed", { app: metadata.id, step: name, error: String(error) });
      return again(retryMs, `${name} could not be done`);
    }
  }

  function completeStep(
    auth: Stored<AuthObject>,
    name: AuthStep,
    signal: AbortSignal,
    extra: Partial<AuthStatus> = {},
  ) {
    const status = {
      done: [...auth.object.status.done.filter((each) => each !== name), name],
      progressAt: clock.now(),
    };
    return write(auth, withStatus(auth.object, { ...status, ...extra }), signal);
  }

  async function move(
    auth: Stored<AuthObject>,
    event: AuthEvent,
    message: string | null,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const moved = afterEvent(auth.object, event, clock.now(), message);
    if (moved === undefined) return settled;
    const unit = begin();
    unit.update(authKind, auth, moved.after);
    const announcement = authEvent(moved.effect, moved.after);
    if (announcement !== undefined) unit.event(announcement);
    const outcome = await committed(unit, signal);
    const { metadata, status } = auth.object;
    log.info("sign-in changed state", { app: metadata.id, from: status.state, event, to: moved.after.status.state });
    return outcome;
  }

  function write(before: Stored<AuthObject>, after: AuthObject, signal: AbortSignal): Promise<ReconcileOutcome> {
    const unit = begin();
    unit.update(authKind, before, after);
    return committed(unit, signal);
  }

  async function committed(unit: UnitOfWork, signal: AbortSignal): Promise<ReconcileOutcome> {
    try {
      const revision = await unit.commit(signal);
      await Promise.all([auths.untilRevision(revision, 1_000), services.untilRevision(revision, 1_000)]);
    } catch (error) {
      // Another writer was first: the next reconcile sees its change.
      if (!(error instanceof Conflict)) throw error;
    }
    return again(50, "the next step");
  }

  return {
    reconciler: { name: "app-auth", reconcile },
    keys: () => auths.ids(),
    inputs: (id) => {
      const auth = auths.get(id);
      const service = services.get(auth?.object.spec.serviceId ?? "");
      return `${auth?.modRevision ?? 0} ${service?.modRevision ?? 0}`;
    },
    subscribe(onChange) {
      const watches = [
        auths.subscribe(onChange),
        services.subscribe((serviceId) => {
          for (const { object } of auths.by(serviceOfAuth, serviceId)) onChange(object.metadata.id);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}

function withStatus(auth: AuthObject, status: Partial<AuthStatus>): AuthObject {
  return { ...auth, status: { ...auth.status, ...status } };
}

const thenEnable = "Then enable the sign-in again.";

/** The message of a failure that only users can repair, with its remedy; undefined for others, which are retried. */
function refusalOf(error: unknown): string | undefined {
  if (error instanceof MailServerFailure) return `${error.message} ${error.remedy} ${thenEnable}`;
  return error instanceof HoldfastError && error.key === "ENGINE_REFUSED" ? `${error.detail} ${thenEnable}` : undefined;
}

/** True if the service admits the app's issuers with this role, database and networks. */
export function grantsAccess(service: ManagedServiceObject, auth: AuthObject, from: readonly string[]): boolean {
  const { role, databaseName: database } = auth.spec;
  return (service.spec.platformAccess ?? []).some(
    (each) => each.role === role && each.database === database && each.from.join() === from.join(),
  );
}

/** The service with access for the app's issuers from these networks; an undefined `from` removes it. */
export function withAccess(
  service: ManagedServiceObject,
  auth: AuthObject,
  from: readonly string[] | undefined,
): ManagedServiceObject {
  const { role, databaseName: database } = auth.spec;
  const others = (service.spec.platformAccess ?? []).filter((each) => each.role !== role);
  const platformAccess = from === undefined ? others : [...others, { role, database, from: [...from] }];
  const instanceGeneration = service.spec.instanceGeneration + 1;
  return { ...service, spec: { ...service.spec, platformAccess, instanceGeneration } };
}
