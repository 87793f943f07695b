import { HoldfastError } from "@holdfast/common/errors.ts";
import { IndexService } from "@holdfast/proto/holdfast/v1/index_pb.ts";
import { ConsumerGroupService, TopicService } from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import { methodsOf, testCall } from "@holdfast/testing/api/test-call.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { createConsumerGroupApi } from "./consumer-group-api.ts";
import { createIndexApi } from "./index-api.ts";
import { createTopicApi } from "./topic-api.ts";

/** The calls with an effect in an engine, whose tasks end as `outcome` does, and their entries with their outcomes. */
function callsWith(databaseType: string, outcome: () => Promise<unknown>) {
  const entries: string[] = [];
  const service = runningService({ id: "s", name: "s", organizationId: "o" });
  const stored = { object: { ...service, spec: { ...service.spec, databaseType } }, modRevision: 1n };
  const deps = {
    access: partial<ServiceAccess>({ require: () => stored as never, requireRunning: () => stored as never }),
    tasks: partial<EngineTasks>({ run: outcome as never }),
    cursors: {} as Cursors,
    catalog: defaultCatalog,
    auditedActs: {
      async act<T>({ action, detail }: { action: string; detail?: string }, act: () => Promise<T>): Promise<T> {
        try {
          const result = await act();
          entries.push(`${action} ${detail} ok`);
          return result;
        } catch (error) {
          entries.push(`${action} ${detail} ${HoldfastError.from(error).code}`);
          throw error;
        }
      },
    },
  };
  const indices = methodsOf(IndexService, createIndexApi(deps));
  const topics = methodsOf(TopicService, createTopicApi(deps));
  const groups = methodsOf(ConsumerGroupService, createConsumerGroupApi(deps));
  const target = { serviceId: "s", name: "x" };
  const calls = {
    "index.delete": () => indices.deleteIndex(target, testCall()),
    "topic.create": () => topics.createTopic(target, testCall()),
    "topic.update": () => topics.updateTopic({ ...target, partitions: 2 }, testCall()),
    "topic.delete": () => topics.deleteTopic(target, testCall()),
    "consumer-group.reset": () => groups.resetConsumerGroup({ ...target, topic: "t", to: "latest" }, testCall()),
    "consumer-group.delete": () => groups.deleteConsumerGroup(target, testCall()),
  };
  return { calls, entries };
}

const cases = [
  ["index.delete", "opensearch"],
  ["topic.create", "kafka"],
  ["topic.update", "kafka"],
  ["topic.delete", "kafka"],
  ["consumer-group.reset", "kafka"],
  ["consumer-group.delete", "kafka"],
] as const;

test.each(cases)("%s that the engine refuses has no entry of a success", async (action, databaseType) => {
  const refused = new HoldfastError("ENGINE_REFUSED", "No.");
  const { calls, entries } = callsWith(databaseType, () => Promise.reject(refused));
  await expect(calls[action]()).rejects.toBe(refused);
  expect(entries).toEqual([`${action} x engine_refused`]);
});

test.each(cases.filter(([action]) => action.endsWith(".delete")))(
  "%s of what does not exist has no entry of a success",
  async (action, databaseType) => {
    const { calls, entries } = callsWith(databaseType, async () => ({ existed: false }));
    await expect(calls[action]()).rejects.toMatchObject({ key: expect.stringMatching(/_NOT_FOUND$/) });
    expect(entries).toEqual([expect.stringMatching(new RegExp(`^${action} x \\w+_not_found$`))]);
  },
);
