import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import { definePart } from "#kernel/part.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { operationMessage } from "./operation-message.ts";
import { type OperationObject, operationSubject, subjectKey } from "./operation.ts";

export interface OperationApiDeps {
  readonly operations: Collection<OperationObject>;
  readonly access: SubjectAccess;
  readonly cursors: Cursors;
}

/** Finds the subjects of operations for a caller. */
export interface SubjectAccess {
  /** Throws SERVICE_NOT_FOUND unless the service is the caller's. */
  require(serviceId: string, call: Call): unknown;
}

export const subjectAccessPart = definePart<SubjectAccess>("access to subjects of operations");

/** The RPCs of operations. Operations outlive their service for a day, so that the end of a deletion can be read. */
export function createOperationApi({ operations, access, cursors }: OperationApiDeps): ServedService {
  const handlers: Handlers<typeof OperationService> = {
    getOperation: async ({ id }, call) => {
      const operation = operations.get(id)?.object;
      const isTheirs =
        operation?.metadata.organizationId === organizationOf(call) &&
        mayTouch(call, operation.spec.subject.kind, operation.spec.subject.id);
      if (operation === undefined || !isTheirs) {
        throw new HoldfastError("OPERATION_NOT_FOUND", "There is no such operation in the organization.");
      }
      return operationMessage(operation);
    },

    listOperations: async (request, call) => {
      const { serviceId } = request;
      access.require(serviceId, call);
      const page = cursors.open(call, "operations", serviceId, request);
      const newest = operations
        .by(operationSubject, subjectKey({ kind: "managed-service", id: serviceId }))
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
