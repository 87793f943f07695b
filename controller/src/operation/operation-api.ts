import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { matchesOwnerPath, mayTouch, organizationOf } from "#access/caller.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { operationMessage } from "./operation-message.ts";
import { type OperationObject, operationSubject, type Subject, type SubjectKind, subjectKey } from "./operation.ts";

export interface OperationApiDeps {
  readonly operations: Collection<OperationObject>;
  readonly subjects: readonly SubjectKind[];
  readonly cursors: Cursors;
}

/**
 * The RPCs of operations. They are retained for a day after the deletion of their service, for callers of a deletion.
 */
export function createOperationApi({ operations, subjects, cursors }: OperationApiDeps): ServedService {
  /** The subject with this id, of any kind: ids are unique across kinds. Throws SERVICE_NOT_FOUND. */
  function requireSubject(id: string, call: Call): Subject {
    const organizationId = organizationOf(call);
    for (const subject of subjects) {
      const { kind } = subject;
      if (subject.get(id)?.object.metadata.organizationId !== organizationId) continue;
      const ownerKind = subject.ownerKindOf?.(id) ?? kind;
      if (matchesOwnerPath(call, ownerKind) && mayTouch(call, kind, id)) return { kind, id };
    }
    throw new HoldfastError(
      "SERVICE_NOT_FOUND",
      `There is no such ${call.ownerKind ?? "service"} in the organization.`,
    );
  }

  const handlers: Handlers<typeof OperationService> = {
    getOperation: async ({ id }, call) => {
      const operation = operations.get(id)?.object;
      const isVisible =
        operation?.metadata.organizationId === organizationOf(call) &&
        mayTouch(call, operation.spec.subject.kind, operation.spec.subject.id);
      if (operation === undefined || !isVisible) {
        throw new HoldfastError("OPERATION_NOT_FOUND", "There is no such operation in the organization.");
      }
      return operationMessage(operation);
    },

    listOperations: async (request, call) => {
      const subject = requireSubject(request.serviceId, call);
      const page = cursors.open(call, "operations", request.serviceId, request);
      const newest = operations
        .by(operationSubject, subjectKey(subject))
        .map(({ object }) => object)
        .filter(({ metadata }) => page.after === undefined || metadata.id < page.after)
        .toReversed();
      const items = newest.slice(0, page.limit);
      const next = newest.length > items.length ? items.at(-1)?.metadata.id : undefined;
      return { operations: items.map(operationMessage), ...page.next(next) };
    },
  };
  return serve(OperationService, handlers);
}
