import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { mayTouch, organizationOf } from "../access/caller.ts";
import { type Cursors, defaultPageSize } from "../page/cursor.ts";
import type { Collection } from "../store/collection.ts";
import { operationMessage } from "./operation-message.ts";
import type { OperationObject } from "./operation.ts";

export interface OperationApiDeps {
  readonly operations: Collection<OperationObject>;
  /** Throws SERVICE_NOT_FOUND for what is not a service of the caller. */
  readonly access: { require(serviceId: string, call: Call): unknown };
  readonly cursors: Cursors;
}

/** The RPCs of operations. They outlive their service for a day, so that the end of a deletion can be read. */
export function createOperationApi({ operations, access, cursors }: OperationApiDeps): ServedService {
  const handlers: Handlers<typeof OperationService> = {
    getOperation: async ({ id }, call) => {
      const operation = operations.get(id)?.object;
      const isTheirs =
        operation?.metadata.organizationId === organizationOf(call) &&
        mayTouch(call, "managed-service", operation.spec.serviceId);
      if (operation === undefined || !isTheirs) {
        throw new HoldfastError("OPERATION_NOT_FOUND", "There is no such operation in the organization.");
      }
      return operationMessage(operation);
    },

    listOperations: async ({ serviceId, limit, cursor }, call) => {
      access.require(serviceId, call);
      const before = cursors.read(call, "operations", serviceId, cursor);
      const newest = [...operations.values()]
        .map(({ object }) => object)
        .filter(({ metadata, spec }) => spec.serviceId === serviceId && (before === undefined || metadata.id < before))
        .sort((a, b) => (a.metadata.id < b.metadata.id ? 1 : -1));
      const page = newest.slice(0, limit ?? defaultPageSize);
      const last = page.at(-1);
      const more = newest.length > page.length && last !== undefined;
      const nextCursor = more ? { nextCursor: cursors.make(call, "operations", serviceId, last.metadata.id) } : {};
      return { operations: page.map(operationMessage), ...nextCursor };
    },
  };
  return serve(OperationService, handlers);
}
