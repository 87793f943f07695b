import { IndexService } from "@holdfast/proto/holdfast/v1/index_pb.ts";
import { type Contract, casesOf, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(IndexService, {
      listIndices: ofService,
      deleteIndex: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "orders" })),
    }),
  ],
  sdk: [
    sdkCalls(IndexService, {
      listIndices: (c) => c.indices.list("i", page),
      deleteIndex: (c) => c.indices.delete("i", "n"),
    }),
  ],
} satisfies Contract;
