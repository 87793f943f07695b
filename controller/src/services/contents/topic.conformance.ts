import {
  type CreateTopicRequestSchema,
  TopicService,
  type UpdateTopicRequestSchema,
} from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const named = objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "orders" }));

export default {
  authorization: [
    casesOf(TopicService, {
      listTopics: ofService,
      createTopic: named,
      getTopic: named,
      updateTopic: named,
      deleteTopic: named,
    }),
  ],
  listBounds: {
    "holdfast.v1.Topic.config": "settings that the engine has for a topic",
    "holdfast.v1.Topic.partition_states": "partitions of one service",
    "holdfast.v1.TopicPartition.in_sync": "nodes of one service",
    "holdfast.v1.TopicPartition.replicas": "nodes of one service",
  },
  sdk: [
    sdkCalls(TopicService, {
      listTopics: (c) => c.topics.list("i", page),
      createTopic: (c) =>
        c.topics.create("i", { name: "n", partitions: 6, replication_factor: 1, config: { "retention.ms": "1" } }),
      getTopic: (c) => c.topics.get("i", "n"),
      updateTopic: (c) => c.topics.update("i", "n", { partitions: 12, config: { "retention.ms": null } }),
      deleteTopic: (c) => c.topics.delete("i", "n"),
    }),
  ],
  sdkInputs: sameInputs<{
    newTopic: SameInput<sdk.NewTopic, typeof CreateTopicRequestSchema>;
    topicChange: SameInput<sdk.TopicChange & { readonly name: string }, typeof UpdateTopicRequestSchema>;
  }>(),
} satisfies Contract;
