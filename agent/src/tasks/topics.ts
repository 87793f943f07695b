import { create } from "@bufbuild/protobuf";
import {
  AlterEngineTopicResultSchema,
  CreateEngineTopicResultSchema,
  DropEngineGroupResultSchema,
  DropEngineTopicResultSchema,
  ListEngineGroupsResultSchema,
  ListEngineTopicsResultSchema,
  ResetEngineGroupResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { TopicsFacet } from "../engines/topics-facet.ts";
import { TaskFailed } from "../task-failed.ts";
import type { InputOf, TaskContext, TaskHandler } from "./task-handler.ts";

/** Throws "not_supported" for an engine without topics. */
function topicsOf({ driver }: DrivenInstance): TopicsFacet {
  if (driver.topics === undefined) throw new TaskFailed("not_supported", `${driver.engine} has no topics`);
  return driver.topics;
}

export const listEngineTopics: TaskHandler<"listEngineTopics"> = {
  async run({ names }, { engine, signal }) {
    const driven = await engine();
    const found = await topicsOf(driven).list(driven.instance, names, signal);
    const topics = found.map(({ sizeBytes, partitionStates, config, ...topic }) => ({
      ...topic,
      config: { ...config },
      sizeBytes: BigInt(sizeBytes),
      // A list of all topics has no partitions: they may be many.
      partitionStates: (names.length === 0 ? [] : partitionStates).map(
        ({ leader, startOffset, endOffset, replicas, inSync, partition }) => ({
          partition,
          replicas: [...replicas],
          inSync: [...inSync],
          ...(leader !== undefined && { leader }),
          startOffset: BigInt(startOffset),
          endOffset: BigInt(endOffset),
        }),
      ),
    }));
    return create(ListEngineTopicsResultSchema, { topics });
  },
};

export const createEngineTopic: TaskHandler<"createEngineTopic"> = {
  async run({ name, partitions, replicationFactor, config, partitionsMax, mayExist }, { engine, signal }) {
    const driven = await engine();
    const topic = { name, partitions, replicationFactor, config, partitionsMax, mayExist };
    await topicsOf(driven).create(driven.instance, topic, signal);
    return create(CreateEngineTopicResultSchema, {});
  },
};

export const alterEngineTopic: TaskHandler<"alterEngineTopic"> = {
  async run({ name, partitions, set, unset, partitionsMax }, { engine, signal }) {
    const driven = await engine();
    await topicsOf(driven).alter(driven.instance, { name, partitions, set, unset, partitionsMax }, signal);
    return create(AlterEngineTopicResultSchema, {});
  },
};

export const dropEngineTopic: TaskHandler<"dropEngineTopic"> = {
  /** An earlier run may have dropped the topic without recording its result, so it counts as dropped. */
  async inspect(input, context) {
    await dropTopic(input, context);
    return create(DropEngineTopicResultSchema, { existed: true });
  },
  run: async (input, context) => create(DropEngineTopicResultSchema, await dropTopic(input, context)),
};

async function dropTopic({ name }: InputOf<"dropEngineTopic">, { engine, signal }: TaskContext) {
  const driven = await engine();
  return topicsOf(driven).drop(driven.instance, name, signal);
}

export const listEngineGroups: TaskHandler<"listEngineGroups"> = {
  async run({ names, summarized }, { engine, signal }) {
    const driven = await engine();
    const found = await topicsOf(driven).groups.list(driven.instance, { names, summarized }, signal);
    const groups = found.map(({ name, state, lag, offsets }) => ({
      name,
      state,
      ...(summarized && lag !== undefined && { lag: BigInt(lag) }),
      offsets: offsets.map(({ topic, partition, offset, endOffset }) => ({
        topic,
        partition,
        offset: BigInt(offset),
        endOffset: BigInt(endOffset),
      })),
    }));
    return create(ListEngineGroupsResultSchema, { groups });
  },
};

export const resetEngineGroup: TaskHandler<"resetEngineGroup"> = {
  async run({ group, topic, to }, { engine, signal }) {
    const driven = await engine();
    const target = to.case === "timeMs" ? Number(to.value) : to.case;
    if (target === undefined) throw new TaskFailed("engine_refused", "the request has no target of the offsets");
    await topicsOf(driven).groups.reset(driven.instance, { group, topic, to: target }, signal);
    return create(ResetEngineGroupResultSchema, {});
  },
};

export const dropEngineGroup: TaskHandler<"dropEngineGroup"> = {
  async inspect(input, context) {
    await dropGroup(input, context);
    return create(DropEngineGroupResultSchema, { existed: true });
  },
  run: async (input, context) => create(DropEngineGroupResultSchema, await dropGroup(input, context)),
};

async function dropGroup({ name }: InputOf<"dropEngineGroup">, { engine, signal }: TaskContext) {
  const driven = await engine();
  return topicsOf(driven).groups.drop(driven.instance, name, signal);
}
