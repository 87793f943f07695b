import { ConsumerGroupService, type ResetConsumerGroupRequestSchema } from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const group = objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "billing" }));

export default {
  authorization: [
    casesOf(ConsumerGroupService, {
      listConsumerGroups: ofService,
      getConsumerGroup: group,
      resetConsumerGroup: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "billing",
        topic: "orders",
        to: "earliest",
      })),
      deleteConsumerGroup: group,
    }),
  ],
  listBounds: { "holdfast.v1.ConsumerGroup.offsets": "partitions of one service" },
  sdk: [
    sdkCalls(ConsumerGroupService, {
      listConsumerGroups: (c) => c.consumerGroups.list("i", page),
      getConsumerGroup: (c) => c.consumerGroups.get("i", "n"),
      resetConsumerGroup: (c) => c.consumerGroups.reset("i", "n", { topic: "t", to: "latest" }),
      deleteConsumerGroup: (c) => c.consumerGroups.delete("i", "n"),
    }),
  ],
  sdkInputs: sameInputs<{
    consumerGroupReset: SameInput<
      sdk.ConsumerGroupReset & { readonly name: string },
      typeof ResetConsumerGroupRequestSchema
    >;
  }>(),
} satisfies Contract;
