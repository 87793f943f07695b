import type { Clock } from "@holdfast/common/clock.ts";
import { again, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { operationKind, type OperationObject, operationSubject, type Subject, subjectKey } from "./operation.ts";

const dayMs = 86_400_000;
/** Operations of deleted subjects are kept for a day, of living ones for thirty. */
const keptMs = { gone: dayMs, living: 30 * dayMs };
/** Most ended operations kept of one subject, so that a loop of restarts does not fill the store. */
const keptOfService = 100;
/** Taken away in one change. */
const batch = 50;

/** Takes operations away that ended long ago, and all but the newest of a subject. Key: operation id. */
export function createOperationReconciler(deps: {
  operations: Collection<OperationObject>;
  /** False once the subject is deleted. */
  isThere: (subject: Subject) => boolean;
  begin: () => UnitOfWork;
  clock: Clock;
}): Reconciler {
  /** The oldest ended operations of the subject, beyond the number to keep. */
  function beyond(subject: Subject): Stored<OperationObject>[] {
    const ended = deps.operations
      .by(operationSubject, subjectKey(subject))
      .filter(({ object }) => object.status.finishedAt != null);
    return ended.slice(0, Math.max(0, ended.length - keptOfService));
  }

  return {
    name: "operation",
    async reconcile(id, signal) {
      const operation = deps.operations.get(id);
      const finishedAt = operation?.object.status.finishedAt;
      if (operation === undefined || finishedAt == null) return settled;
      const excess = beyond(operation.object.spec.subject).slice(0, batch);
      if (excess.length > 0) {
        const unit = deps.begin();
        for (const each of excess) unit.remove(operationKind, each);
        await unit.commit(signal);
        return again(0, "kept");
      }
      const living = deps.isThere(operation.object.spec.subject);
      const leftMs = finishedAt + (living ? keptMs.living : keptMs.gone) - deps.clock.now();
      if (leftMs > 0) return again(Math.min(leftMs, dayMs), "kept");
      const unit = deps.begin();
      unit.remove(operationKind, operation);
      await unit.commit(signal);
      return settled;
    },
  };
}
