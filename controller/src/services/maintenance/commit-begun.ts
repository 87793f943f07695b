import type { Message } from "@bufbuild/protobuf";
import type { Call } from "@holdfast/common/call.ts";
import { auditOf, commitAndSee } from "#access/caller.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { startedEvent } from "../service/maintenance-events.ts";
import { managedServiceKind, type ManagedServiceObject } from "../service/managed-service.ts";
import type { Begun } from "./begin-maintenance.ts";

interface CommitDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
}

/** Writes what was begun by request in one transaction, with its event, its audit entry and the answer; resolves once memory has it. */
export async function commitBegun<A extends Message>(
  service: Stored<ManagedServiceObject>,
  { after, operation }: Begun,
  { action, answer }: { readonly action: string; readonly answer: A },
  call: Call,
  { begin, services, operations }: CommitDeps,
): Promise<A> {
  const unit = begin();
  unit.create(operationKind, operation);
  unit.update(managedServiceKind, service, after);
  unit.event(startedEvent(after, operation));
  unit.audit(auditOf(call, action, "managed-service", after.metadata.id));
  unit.answer(call, answer);
  await commitAndSee(call, unit, [services, operations]);
  return answer;
}
