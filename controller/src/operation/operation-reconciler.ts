import type { Clock } from "@holdfast/common/clock.ts";
import { again, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { operationKind, type OperationObject, operationSubject, type Subject, subjectKey } from "./operation.ts";

const dayMs = 86_400_000;
/** Retention of ended operations: a day if their subject is deleted, otherwise thirty days. */
const retentionMs = { deletedSubject: dayMs, existingSubject: 30 * dayMs };
/** Maximum number of ended operations of a subject, so that a loop of restarts does not fill the store. */
const endedMax = 100;
/** Deletions in one transaction. */
const batch = 50;

/** Deletes operations after their retention, and the oldest ones of a subject above 100. Key: operation id. */
export function createOperationReconciler(deps: {
  operations: Collection<OperationObject>;
  /** True unless the subject is deleted. */
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
        return again(0, "more operations may exceed the limit");
      }
      const subjectExists = deps.exists(operation.object.spec.subject);
      const retainedMs = subjectExists ? retentionMs.existingSubject : retentionMs.deletedSubject;
      const remainingMs = finishedAt + retainedMs - deps.clock.now();
      if (remainingMs > 0) return again(Math.min(remainingMs, dayMs), "retained");
      const unit = deps.begin();
      unit.remove(operationKind, operation);
      await unit.commit(signal);
      return settled;
    },
  };
}
