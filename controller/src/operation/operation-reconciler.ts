import type { Clock } from "@holdfast/common/clock.ts";
import { again, type Reconciler, settled } from "../runtime/reconciler.ts";
import type { Collection } from "../store/collection.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import type { OperationObject } from "./operation.ts";

const dayMs = 86_400_000;
/** A gone service's operations are kept for a day, a living one's for thirty. */
const keptMs = { gone: dayMs, living: 30 * dayMs };

/** Takes operations away that ended long ago. Key: operation id. */
export function createOperationReconciler(deps: {
  operations: Collection<OperationObject>;
  /** Undefined for a service that is gone. */
  services: { get(serviceId: string): unknown };
  begin: () => UnitOfWork;
  clock: Clock;
}): Reconciler {
  return {
    name: "operation",
    async reconcile(id, signal) {
      const operation = deps.operations.get(id);
      const finishedAt = operation?.object.status.finishedAt;
      if (operation === undefined || finishedAt == null) return settled;
      const living = deps.services.get(operation.object.spec.serviceId) !== undefined;
      const leftMs = finishedAt + (living ? keptMs.living : keptMs.gone) - deps.clock.now();
      if (leftMs > 0) return again(Math.min(leftMs, dayMs), "kept");
      const unit = deps.begin();
      unit.remove("operation", operation);
      await unit.commit(signal);
      return settled;
    },
  };
}
