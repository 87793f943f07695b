import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { findOperation } from "#operation/find-operation.ts";
import { cancelled, isOver, operationKind, type OperationObject } from "#operation/operation.ts";
import { again, type Outcome } from "#kernel/runtime/reconciler.ts";
import type { Holds } from "#kernel/clock/holds.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject, type Succession } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import { serviceEvent } from "../service-events.ts";
import { beginOperation } from "../service-verbs.ts";
import { isBraked } from "./failover-brake.ts";
import { askReplication } from "./ask-replication.ts";
import { vouchersOf } from "./members.ts";
import type { Pulse } from "./pulse.ts";
import { isConfirmed, isSuspect, mayFailOver, successorsOf, type Witness } from "./suspicion.ts";

export interface AutomaticFailoverDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<ManagedServiceObject>, "reached">;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Pick<Fleet, "run">;
  readonly pulse: Pulse;
  readonly holds: Pick<Holds, "list" | "unheld">;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Gives up a primary that fell silent, by one transaction. Undefined when there is no reason to. */
export async function settlePrimary(
  service: Stored<ManagedServiceObject>,
  observe: () => ObservedService,
  deps: AutomaticFailoverDeps,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const { object } = service;
  // Most services have nobody to take the place: they are not looked at for it.
  if (vouchersOf(object).length === 0) return undefined;
  const observed = observe();
  if (!mayFailOver(object, observed) || isBraked(deps.holds.list())) return undefined;
  const heard = deps.pulse.heard(object.status.primaryNodeId);
  if (heard === undefined || !isSuspect(heard)) return undefined;
  const asked = successorsOf(object, observed).map(({ id }) =>
    askReplication(object, id, deps, signal, { replacesPrimary: true }),
  );
  const witnesses = (await Promise.all(asked)).flatMap((told): Witness[] =>
    told?.role === "replica" ? [{ streaming: told.streaming, silentMs: Number(told.silentMs) }] : [],
  );
  if (!isConfirmed(heard, witnesses)) return undefined;
  const { askedAgoMs, isEngineSilent } = heard;
  deps.log.warn("primary given up", { service: object.metadata.id, askedAgoMs, isEngineSilent });
  const now = deps.clock.now();
  const begun = beginFailover(object, { operationId: deps.newId(), now });
  const unit = deps.begin();
  unit.onlyWhile(deps.holds.unheld("failover"));
  const reason = isEngineSilent ? "engine_silent" : "node_silent";
  await writeFailover(unit, service, { ...begun, reason, now }, deps.operations, signal);
  await deps.services.reached(await unit.commit(signal), 1_000);
  return again(0, "failover");
}

/** Has the failover begin with the unit's commit. Without a primary nothing else can go on: what is in progress is cancelled. */
export async function writeFailover(
  unit: UnitOfWork,
  service: Stored<ManagedServiceObject>,
  begun: {
    readonly after: ManagedServiceObject;
    readonly operation: OperationObject;
    readonly reason: "engine_silent" | "node_silent" | "forced";
    readonly now: number;
  },
  operations: Collection<OperationObject>,
  signal: AbortSignal,
): Promise<void> {
  const { after, operation, reason, now } = begun;
  const { operationId, primaryNodeId } = service.object.status;
  const current = await findOperation(operations, operationId, signal);
  if (current !== undefined && !isOver(current.object))
    unit.update(operationKind, current, cancelled(current.object, now));
  unit.create(operationKind, operation);
  unit.update(managedServiceKind, service, after);
  unit.event(serviceEvent("service.failover_started", after, { from_node_id: primaryNodeId, reason }));
}

/**
 * Pure: the service whose primary is nobody until it is certain that the one of before takes no writes. `forced`: who takes
 * its place then, whatever it lacks.
 */
export function beginFailover(
  service: ManagedServiceObject,
  { operationId, now }: { readonly operationId: string; readonly now: number },
  forced?: string,
): { after: ManagedServiceObject; operation: OperationObject } {
  const succession: Succession = {
    from: service.status.primaryNodeId,
    to: "",
    step: "fence",
    since: now,
    ...(forced !== undefined && { forced }),
  };
  const { after, operation } = beginOperation(service, "failover", { succession }, operationId, now);
  return {
    after,
    operation: { ...operation, spec: { ...operation.spec, work: { nodeId: "", from: succession.from } } },
  };
}
