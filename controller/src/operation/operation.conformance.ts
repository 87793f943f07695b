import { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(OperationService, {
      getOperation: objectScoped(({ operationId }) => ({ id: operationId })),
      listOperations: ofService,
    }),
  ],
  sdk: [
    sdkCalls(OperationService, {
      getOperation: (c) => c.operations.get("i"),
      listOperations: (c) => c.operations.list("i", page),
    }),
  ],
  listBounds: {
    "holdfast.v1.Operation.warnings": "one of each kind and node",
  },
  kindBounds: {
    operation: "the newest 100 of a service",
  },
} satisfies Contract;
