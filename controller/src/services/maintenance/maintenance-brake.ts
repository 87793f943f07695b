import type { Holds } from "#kernel/clock/holds.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { isOver, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import {
  brakeKind,
  type BrakeRecord,
  brakeRecordId,
  newBrakeRecord,
  servicesThatRefused,
  withFailure,
  withUnderWay,
} from "./brake-record.ts";

/** So many of a fleet's services at once, and one in any case. */
const shareAtOnce = 0.05;
/** What controllers share is one object of bounded size. */
const mostAtOnce = 100;
/**
 * So many owners on whose services one image failed, and no other is tried by itself before an operator has looked. What one
 * owner's services come to says as much of the owner as of the image: then that owner's others are left alone.
 */
const ownersToHalt = 2;
const failuresToSpare = 2;

/**
 * Keeps work that begins by itself from going wrong everywhere at once, whichever controllers begin it. Users who apply updates
 * themselves pass it.
 */
export interface MaintenanceBrake {
  /** May one more begin, as far as this controller knows? `claim` has the last word. */
  mayBegin(): boolean;
  /** Has the image failed so often on services of this owner that its others are not tried? */
  spares(organizationId: string, image: string): boolean;
  /**
   * Adds to the unit that this operation is one of those at once. False when there are enough: then nothing was added. The
   * commit throws Conflict when another one was first, and when a hold came meanwhile.
   */
  claim(unit: UnitOfWork, operationId: string, signal: AbortSignal): Promise<boolean>;
  /** Tells it of an image that failed on a service, before that is on record there. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}

export interface MaintenanceBrakeDeps {
  readonly services: Pick<Collection<ManagedServiceObject>, "size" | "get" | "values">;
  readonly operations: Collection<OperationObject>;
  readonly brakeRecords: Collection<BrakeRecord>;
  readonly holds: Pick<Holds, "list" | "set" | "unheld">;
  readonly begin: () => UnitOfWork;
  readonly now: () => number;
}

export function createMaintenanceBrake(deps: MaintenanceBrakeDeps): MaintenanceBrake {
  const { services, operations, brakeRecords, holds, now } = deps;
  const most = () => Math.min(mostAtOnce, Math.max(1, Math.floor(services.size * shareAtOnce)));

  /** Every maintenance that this controller knows to be under way, those of users too. */
  function known(): Set<string> {
    const ids = new Set<string>();
    for (const { object } of operations.values())
      if (object.spec.type === "maintenance" && !isOver(object)) ids.add(object.metadata.id);
    return ids;
  }

  /** Is it not over yet? One that this controller has not heard of may be new. */
  async function isUnderWay(operationId: string, signal: AbortSignal): Promise<boolean> {
    const operation = operations.get(operationId) ?? (await operations.fresh(operationId, signal));
    return operation !== undefined && !isOver(operation.object);
  }

  /** A service that is gone counts as an owner of its own. */
  const ownerOf = (serviceId: string) => services.get(serviceId)?.object.metadata.organizationId ?? serviceId;

  function hasOneOwner(): boolean {
    const owners = new Set<string>();
    for (const { object } of services.values()) {
      if (owners.add(object.metadata.organizationId).size > 1) return false;
    }
    return true;
  }

  function write(unit: UnitOfWork, stored: Stored<BrakeRecord> | undefined, after: BrakeRecord): void {
    if (stored === undefined) unit.create(brakeKind, after);
    else unit.update(brakeKind, stored, after);
  }

  return {
    mayBegin: () => holds.list("maintenance").length === 0 && known().size < most(),
    spares(organizationId, image) {
      const record = brakeRecords.get(brakeRecordId)?.object;
      const failures = record === undefined ? [] : servicesThatRefused(record, image);
      return failures.filter((id) => ownerOf(id) === organizationId).length >= failuresToSpare;
    },
    async claim(unit, operationId, signal) {
      const stored = await brakeRecords.fresh(brakeRecordId, signal);
      const record = stored?.object ?? newBrakeRecord(now());
      const claimed: string[] = [];
      for (const id of record.status.underWay) if (await isUnderWay(id, signal)) claimed.push(id);
      if (known().union(new Set(claimed)).size >= most()) return false;
      write(unit, stored, withUnderWay(record, [...claimed, operationId], now()));
      unit.onlyWhile(holds.unheld("maintenance"));
      return true;
    },
    async failed(image, serviceId, reason, signal) {
      const failures = await retryConflict(signal, async () => {
        const stored = await brakeRecords.fresh(brakeRecordId, signal);
        const record = stored?.object ?? newBrakeRecord(now());
        const after = withFailure(record, image, serviceId, now());
        const unit = deps.begin();
        write(unit, stored, after);
        await unit.commit(signal);
        return servicesThatRefused(after, image);
      });
      const judges = hasOneOwner() ? failures : [...new Set(failures.map(ownerOf))];
      if (judges.length < ownersToHalt) return;
      const text = `The image ${image} failed on ${failures.length} services, the last one ${serviceId}: ${reason}`;
      await holds.set({ kind: "maintenance", only: "maintenance", reason: text, since: now(), until: null }, signal);
    },
  };
}
