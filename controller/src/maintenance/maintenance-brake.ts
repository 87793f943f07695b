import type { Holds } from "../clock/holds.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { isOver, type OperationObject } from "../operation/operation.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import { retryConflict } from "../store/retry-conflict.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import {
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
/** So many services on which one image failed, and no other is tried by itself before an operator has looked. */
const failuresToHalt = 2;

/**
 * Keeps work that begins by itself from going wrong everywhere at once, whichever controllers begin it. Users who apply updates
 * themselves pass it.
 */
export interface MaintenanceBrake {
  /** May one more begin, as far as this controller knows? `claim` has the last word. */
  mayBegin(): boolean;
  /**
   * Adds to the unit that this operation is one of those at once. False when there are enough: then nothing was added. The
   * commit throws Conflict when another one was first, and when a hold came meanwhile.
   */
  claim(unit: UnitOfWork, operationId: string, signal: AbortSignal): Promise<boolean>;
  /** Tells it of an image that failed on a service, before that is on record there. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}

export interface MaintenanceBrakeDeps {
  readonly services: Pick<Collection<ManagedServiceObject>, "size">;
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

  function write(unit: UnitOfWork, stored: Stored<BrakeRecord> | undefined, after: BrakeRecord): void {
    if (stored === undefined) unit.create("maintenance-brake", after);
    else unit.update("maintenance-brake", stored, after);
  }

  return {
    mayBegin: () => holds.list("maintenance").length === 0 && known().size < most(),
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
        return servicesThatRefused(after, image).length;
      });
      if (failures < failuresToHalt) return;
      const text = `The image ${image} failed on ${failures} services, the last one ${serviceId}: ${reason}`;
      await holds.set({ kind: "maintenance", only: "maintenance", reason: text, since: now(), until: null }, signal);
    },
  };
}
