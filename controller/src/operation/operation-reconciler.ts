import type { Clock } from "@holdfast/common/clock.ts";
import { again, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { operationKind, type OperationObject, operationSubject, type Subject, subjectKey } from "./operation.ts";

const dayMs = 86_400_000;
/** Retention of ended operations: a day after their subject's deletion, otherwise thirty days. */
const retentionMs = { deleted: dayMs, living: 30 * dayMs };
/** Most ended operations of one subject, so that a loop of restarts does not fill the store. */
const endedMax = 100;
/** Deletions in one transaction. */
const batch = 50;

/** Deletes operations past their retention, and all but the newest of a subject. Key: operation id. */
export function createOperationReconciler(deps: {
  operations: Collection<OperationObject>;
  /** False once the subject is deleted. */
  exists: (subject: Subject) => boolean;
  begin: () => UnitOfWork;
  clock: Clock;
}): Reconciler {
  /** The oldest ended operations of the subject above the limit. */
  function excessOf(subject: Subject): Stored<OperationObject>[] {
    const ended = deps.operations
      .by(operationSubject, subjectKey(subject))
      .filter(({ object }) => object.status.finishedAt != null);
    return ended.slice(0, Math.max(0, ended.length - endedMax));
  }

  return {
    name: "operation",
    async reconcile(id, signal) {
      const operation = deps.operations.get(id);
      const finishedAt = operation?.object.status.finishedAt;
      if (operation === undefined || finishedAt == null) return settled;
      const excess = excessOf(operation.object.spec.subject).slice(0, batch);
      if (excess.length > 0) {
        const unit = deps.begin();
        for (const each of excess) unit.remove(operationKind, each);
        await unit.commit(signal);
        return again(0, "kept");
      }
      const living = deps.exists(operation.object.spec.subject);
      const remainingMs = finishedAt + (living ? retentionMs.living : retentionMs.deleted) - deps.clock.now();
      if (remainingMs > 0) return again(Math.min(remainingMs, dayMs), "kept");
      const unit = deps.begin();
      unit.remove(operationKind, operation);
      await unit.commit(signal);
      return settled;
    },
  };
}
