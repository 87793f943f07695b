import type { AutomationPauses } from "#kernel/clock/automation-pauses.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { isFinished, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  rolloutRecordKind,
  type RolloutRecord,
  rolloutRecordId,
  newRolloutRecord,
  servicesFailedOn,
  withFailure,
  withInFlight,
} from "./rollout-record.ts";
import { serviceOperations } from "../service/service-operations.ts";

/** Share of the fleet's services on which automatic maintenance runs concurrently; at least one service. */
const concurrentShare = 0.05;
/** Maximum number of concurrent operations, which bounds the size of the shared record. */
const concurrentMax = 100;
/**
 * Number of owners with failed services after which automatic maintenance is paused until an operator resumes it.
 * Failures of one owner may be due to that owner's use of the engine: after `failuresToBlockOwner` failures only that
 * owner's services are skipped.
 */
const failedOwnersToPause = 2;
const failuresToBlockOwner = 2;

/**
 * Limits automatic maintenance over all controllers, so that a faulty image fails on few services. Updates that users
 * apply are not limited.
 *
 * The limiter counts running operations in one shared record (`rollout-record.ts`), which is changed by
 * compare-and-set. Failed images are recorded with their services; failures of two owners pause maintenance.
 */
export interface RolloutLimiter {
  /** True if another operation may start, by this controller's memory. `claim` decides finally. */
  mayBegin(): boolean;
  /** True if the image failed so often on this owner's services that the owner's remaining services are skipped. */
  blocksOwner(organizationId: string, image: string): boolean;
  /**
   * Counts the operation in the record, as part of the unit of work. Returns false, with nothing added, at the limit.
   * The commit throws Conflict if another controller changed the record, or if maintenance was paused, before it.
   */
  claim(unit: UnitOfWork, operationId: string, signal: AbortSignal): Promise<boolean>;
  /** Records an image's failure on a service, before the service records it. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}

export interface RolloutLimiterDeps {
  readonly services: Pick<Collection<ManagedServiceObject>, "size" | "get" | "values">;
  readonly operations: Collection<OperationObject>;
  readonly rolloutRecords: Collection<RolloutRecord>;
  readonly automationPauses: Pick<AutomationPauses, "list" | "set" | "unlessPaused">;
  readonly begin: () => UnitOfWork;
  readonly now: () => number;
}

export function createRolloutLimiter(deps: RolloutLimiterDeps): RolloutLimiter {
  const { services, operations, rolloutRecords, automationPauses, now } = deps;
  const limit = () => Math.min(concurrentMax, Math.max(1, Math.floor(services.size * concurrentShare)));

  /**
   * Ids of maintenance operations in progress in this controller's memory, including operations that users requested.
   */
  function inFlight(): Set<string> {
    const ids = new Set<string>();
    for (const { object } of operations.values())
      if (serviceOperations.maintenance.is(object) && !isFinished(object)) ids.add(object.metadata.id);
    return ids;
  }

  /** True if the operation has not ended. Reads the store if memory lacks the operation, because it may be new. */
  async function isInFlight(operationId: string, signal: AbortSignal): Promise<boolean> {
    const operation = operations.get(operationId) ?? (await operations.getCurrent(operationId, signal));
    return operation !== undefined && !isFinished(operation.object);
  }

  /** Organization of a service; for a deleted service its id, so that it counts as a separate owner. */
  const ownerOf = (serviceId: string) => services.get(serviceId)?.object.metadata.organizationId ?? serviceId;

  function hasOneOwner(): boolean {
    const owners = new Set<string>();
    for (const { object } of services.values()) {
      if (owners.add(object.metadata.organizationId).size > 1) return false;
    }
    return true;
  }

  function write(unit: UnitOfWork, stored: Stored<RolloutRecord> | undefined, after: RolloutRecord): void {
    if (stored === undefined) unit.create(rolloutRecordKind, after);
    else unit.update(rolloutRecordKind, stored, after);
  }

  return {
    mayBegin: () => automationPauses.list("maintenance").length === 0 && inFlight().size < limit(),
    blocksOwner(organizationId, image) {
      const record = rolloutRecords.get(rolloutRecordId)?.object;
      const failures = record === undefined ? [] : servicesFailedOn(record, image);
      return failures.filter((id) => ownerOf(id) === organizationId).length >= failuresToBlockOwner;
    },
    async claim(unit, operationId, signal) {
      const stored = await rolloutRecords.getCurrent(rolloutRecordId, signal);
      const record = stored?.object ?? newRolloutRecord(now());
      const claimed: string[] = [];
      for (const id of record.status.inFlight) if (await isInFlight(id, signal)) claimed.push(id);
      if (inFlight().union(new Set(claimed)).size >= limit()) return false;
      write(unit, stored, withInFlight(record, [...claimed, operationId], now()));
      unit.onlyWhile(automationPauses.unlessPaused("maintenance"));
      return true;
    },
    async failed(image, serviceId, reason, signal) {
      const failures = await retryConflict(signal, async () => {
        const stored = await rolloutRecords.getCurrent(rolloutRecordId, signal);
        const record = stored?.object ?? newRolloutRecord(now());
        const after = withFailure(record, image, serviceId, now());
        const unit = deps.begin();
        write(unit, stored, after);
        await unit.commit(signal);
        return servicesFailedOn(after, image);
      });
      const failedOwners = hasOneOwner() ? failures : [...new Set(failures.map(ownerOf))];
      if (failedOwners.length < failedOwnersToPause) return;
      const text = `The image ${image} failed on ${failures.length} services, the last one ${serviceId}: ${reason}`;
      await automationPauses.set(
        { kind: "maintenance", only: "maintenance", reason: text, since: now(), until: null },
        signal,
      );
    },
  };
}
