import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { canceled, findOperation, isFinished, operationKind, type OperationObject } from "#operation/operation.ts";
import { again, type ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { AutomationPause, AutomationPauses } from "#kernel/clock/automation-pauses.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork, Changes } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject, type PrimaryChange } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { serviceEvent } from "../../../service-events.ts";
import { beginOperation } from "../../../service-commands.ts";
import { tryReadReplication } from "../replication/read-replication.ts";
import type { FailureDetector } from "./failure-detector.ts";
import { canFailOver, countedCandidatesOf, isFailureConfirmed, isSuspect, type PrimaryReport } from "./suspicion.ts";
import { failoverCandidatesOf } from "../primary.ts";

export interface AutomaticFailoverDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<ManagedServiceObject>, "untilRevision">;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Pick<Fleet, "run">;
  readonly failureDetector: FailureDetector;
  readonly automationPauses: Pick<AutomationPauses, "list" | "unlessPaused">;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Starts the failover of a silent primary in one transaction: its agent sends no lease requests, or reports a silent
 * engine, and a replica confirms that (`suspicion.ts`). Undefined if there is no reason to.
 */
export async function failOverSilentPrimary(
  service: Stored<ManagedServiceObject>,
  observe: () => ObservedService,
  deps: AutomaticFailoverDeps,
  signal: AbortSignal,
): Promise<ReconcileOutcome | undefined> {
  const { object } = service;
  // Most services have no failover candidate.
  if (failoverCandidatesOf(object).length === 0) return undefined;
  const observed = observe();
  if (!canFailOver(object, observed) || failoverSuspended(deps.automationPauses.list())) return undefined;
  const leaseReport = deps.failureDetector.leaseReport(object.status.primaryNodeId);
  if (leaseReport === undefined || !isSuspect(leaseReport)) return undefined;
  const queries = countedCandidatesOf(object, observed).map(({ id }) =>
    tryReadReplication(object, id, deps, signal, { replacesPrimary: true }),
  );
  const primaryReports = (await Promise.all(queries)).flatMap((response): PrimaryReport[] =>
    response?.role === "replica" ? [{ streaming: response.streaming, silentMs: Number(response.silentMs) }] : [],
  );
  if (!isFailureConfirmed(leaseReport, primaryReports)) return undefined;
  const { requestedAgoMs, isEngineUnresponsive } = leaseReport;
  deps.log.warn("failover started", { service: object.metadata.id, requestedAgoMs, isEngineUnresponsive });
  const now = deps.clock.now();
  const failover = beginFailover(object, { operationId: deps.newId(), now });
  const unit = deps.begin();
  unit.onlyWhile(deps.automationPauses.unlessPaused("failover"));
  const reason = isEngineUnresponsive ? "engine_silent" : "node_silent";
  await writeFailover(unit, service, { ...failover, reason, now }, deps.operations, signal);
  await deps.services.untilRevision(await unit.commit(signal), 1_000);
  return again(0, "failover");
}

/**
 * Adds the start of a failover to the unit of work. Other operations cannot proceed without a primary, so the operation
 * in progress is canceled.
 */
export async function writeFailover(
  unit: Changes,
  service: Stored<ManagedServiceObject>,
  failover: {
    readonly after: ManagedServiceObject;
    readonly operation: OperationObject;
    readonly reason: "engine_silent" | "node_silent" | "forced";
    readonly now: number;
  },
  operations: Collection<OperationObject>,
  signal: AbortSignal,
): Promise<void> {
  const { after, operation, reason, now } = failover;
  const { operationId, primaryNodeId } = service.object.status;
  const current = await findOperation(operations, operationId, signal);
  if (current !== undefined && !isFinished(current.object))
    unit.update(operationKind, current, canceled(current.object, now));
  unit.create(operationKind, operation);
  unit.update(managedServiceKind, service, after);
  unit.event(serviceEvent("service.failover_started", after, { from_node_id: primaryNodeId, reason }));
}

/**
 * The service with a failover in its first step: no node is the primary until it is certain that the old primary takes
 * no writes. `forced`: id of the successor that an operator chose, even if it lacks data.
 */
export function beginFailover(
  service: ManagedServiceObject,
  { operationId, now }: { readonly operationId: string; readonly now: number },
  forced?: string,
): { after: ManagedServiceObject; operation: OperationObject } {
  const primaryChange: PrimaryChange = {
    from: service.status.primaryNodeId,
    to: "",
    step: "fence",
    since: now,
    ...(forced !== undefined && { forced }),
  };
  const work = { nodeId: "", from: primaryChange.from };
  return beginOperation(service, "failover", { primaryChange }, { operationId, now, work });
}

/**
 * True if an operator suspended automatic failovers. Other pauses do not apply: they are for actions by wall-clock
 * time, which failovers do not use. The kind `unknown` (before the store was read) suspends failovers too.
 */
export function failoverSuspended(pauses: readonly Pick<AutomationPause, "kind">[]): boolean {
  return pauses.some(({ kind }) => kind === "failover" || kind === "unknown");
}
