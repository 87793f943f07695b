import type { Holds } from "../clock/holds.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { isOver, type OperationObject } from "../operation/operation.ts";
import type { Collection } from "../store/collection.ts";

/** So many of a fleet's services at once, and one in any case. */
const shareAtOnce = 0.05;
/** So many services on which one image failed, and no other is tried by itself before an operator has looked. */
const failuresToHalt = 2;

/** Keeps work that begins by itself from going wrong everywhere at once. Users who apply updates themselves pass it. */
export interface MaintenanceBrake {
  /** May one more begin now? Another controller may say yes at the same moment: the share is a bound for each of them. */
  mayBegin(): boolean;
  /** Counts one that begins until it is on record. */
  whileBeginning<T>(begin: () => Promise<T>): Promise<T>;
  /** Tells it of an image that failed on a service, before that is on record there. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}

export function createMaintenanceBrake(deps: {
  services: Collection<ManagedServiceObject>;
  operations: Collection<OperationObject>;
  holds: Pick<Holds, "list" | "set">;
  now: () => number;
}): MaintenanceBrake {
  const { services, operations, holds } = deps;
  let beginning = 0;
  return {
    mayBegin() {
      if (holds.list("maintenance").length > 0) return false;
      const most = Math.max(1, Math.floor(services.size * shareAtOnce));
      let underWay = beginning;
      for (const { object } of operations.values())
        if (object.spec.type === "maintenance" && !isOver(object)) underWay += 1;
      return underWay < most;
    },
    async whileBeginning(begin) {
      beginning += 1;
      try {
        return await begin();
      } finally {
        beginning -= 1;
      }
    },
    async failed(image, serviceId, reason, signal) {
      let others = 0;
      for (const { object } of services.values())
        if (object.metadata.id !== serviceId && object.status.maintenance.refused?.image === image) others += 1;
      if (others + 1 < failuresToHalt) return;
      const text = `The image ${image} failed on ${others + 1} services, the last one ${serviceId}: ${reason}`;
      const hold = { kind: "maintenance", only: "maintenance", reason: text, since: deps.now(), until: null } as const;
      await holds.set(hold, signal);
    },
  };
}
