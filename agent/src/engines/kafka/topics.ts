import { kafkaBatchBytes } from "@holdfast/common/engine-catalog/kafka.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { effectiveParameters, planOf } from "../effective-parameters.ts";
import { EngineRefused } from "../engine-errors.ts";
import type { EngineTopic, NewTopic, TopicChange, TopicsFacet } from "../topics-facet.ts";
import type { Instance } from "../instance.ts";
import { readPartitions } from "./cluster-view.ts";
import { groups } from "./groups.ts";
import { isVisible, platform } from "./layout.ts";
import { endpointsOf } from "./offsets.ts";
import {
  createPartitions,
  createTopics,
  deleteTopics,
  describeConfigs,
  describeLogDirs,
  incrementalAlterConfigs,
  metadata,
} from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, KafkaRefusal, requireSuccess } from "./protocol/protocol-error.ts";
import { type Sessions, withAllSessions, withSession } from "./session.ts";
import { replicationFactorOf } from "./settings.ts";
import { untilApplied } from "./until-applied.ts";

const timeoutMs = 10_000;
/** ConfigResource.Type.TOPIC, AlterConfigOp.OpType and DescribeConfigsResponse.ConfigSource. */
const topicType = 2;
const operations = { set: 0, unset: 1 } as const;
const sourceTopic = 1;
const noId = Buffer.alloc(16).toString("base64url");

/** Topics of users, read from the broker's copy of the cluster's metadata and changed through its controller. */
export const topics: TopicsFacet = {
  list: (instance, names, signal) =>
    withAllSessions(instance, signal, async (sessions) => {
      const found = await topicsOf(sessions[0], names.length === 0 ? null : names.filter(isVisible));
      return names.length === 0 ? found : withDetails(sessions, found);
    }),

  create: (instance, topic, signal) =>
    withAllSessions(instance, signal, async (sessions) => {
      const [session] = sessions;
      requireName(topic.name);
      const { name, partitions = -1, config } = topic;
      requireBatchSize(instance, config);
      const replicationFactor = topic.replicationFactor ?? (await defaultFactorOf(instance, session));
      await requireCapacity(session, Math.max(partitions, 1), topic.partitionsMax);
      const configs = Object.entries(config).map(([key, value]) => ({ name: key, value }));
      const request = { name, partitions, replicationFactor, assignments: [], configs };
      const answer = await session.call(createTopics, { topics: [request], timeoutMs, validateOnly: false });
      const [result] = answer.topics;
      if (result?.errorCode === errorCodes.topicAlreadyExists) await requireOwn(instance, sessions, topic);
      else if (result !== undefined) refuse(() => requireSuccess("CreateTopics", result));
      await untilApplied(signal, async () => (await topicsOf(session, [name])).length === 1);
    }),

  alter: (instance, change, signal) =>
    withSession(instance, signal, async (session) => {
      requireBatchSize(instance, change.set);
      const [before] = await topicsOf(session, [change.name].filter(isVisible));
      if (before === undefined) throw missing(change.name);
      await addPartitions(session, before, change);
      await alterConfig(session, change);
      const count = change.partitions ?? before.partitions;
      await untilApplied(signal, async () => {
        const [after] = await topicsOf(session, [change.name]);
        const config = (await configsOf(session, [change.name])).get(change.name) ?? {};
        return after?.partitions === count && hasSettings(config, change);
      });
    }),

  drop: (instance, name, signal) =>
    withSession(instance, signal, async (session) => {
      if (!isVisible(name)) return { existed: false };
      const before = await topicIdOf(session, name);
      const { results } = await session.call(deleteTopics, { topics: [{ name, id: noId }], timeoutMs });
      const [result] = results;
      if (result?.errorCode === errorCodes.unknownTopicOrPartition) return { existed: false };
      if (result !== undefined) refuse(() => requireSuccess("DeleteTopics", result));
      // While clients write, Kafka creates a topic of the same name again.
      await untilApplied(signal, async () => {
        const found = await topicIdOf(session, name);
        return found === undefined || (before !== undefined && found !== before);
      });
      return { existed: true };
    }),

  groups,
};

function requireName(name: string): void {
  if (!isVisible(name))
    throw new EngineRefused(`${name} begins as names of the engine or the platform do: "__" and "${platform}".`);
}

function missing(name: string): EngineRefused {
  return new EngineRefused(`The engine has no topic ${name}.`, { code: "topic_not_found" });
}

/** Throws EngineRefused with the engine's message for a refusal of the request itself. */
function refuse(check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof KafkaRefusal)) throw error;
    throw new EngineRefused(error.message, { cause: error });
  }
}

/** Users' topics by name: all, or the existing ones of `names`. Without settings and sizes. */
async function topicsOf(session: Connection, names: readonly string[] | null): Promise<EngineTopic[]> {
  if (names?.length === 0) return [];
  const requested = names?.map((name) => ({ id: noId, name })) ?? null;
  const request = { topics: requested, allowAutoCreation: false, includeAuthorizedOperations: false };
  const answer = await session.call(metadata, request);
  const found = answer.topics.flatMap(({ errorCode, name, partitions }): EngineTopic[] => {
    if (name === null || !isVisible(name) || errorCode === errorCodes.unknownTopicOrPartition) return [];
    const partitionStates = partitions.map(({ index, leader, replicas, inSync }) => ({
      partition: index,
      leader: leader < 0 ? undefined : leader,
      replicas,
      inSync,
      startOffset: 0,
      endOffset: 0,
    }));
    const replicationFactor = partitions[0]?.replicas.length ?? 0;
    return [{ name, partitions: partitions.length, replicationFactor, sizeBytes: 0, config: {}, partitionStates }];
  });
  return found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Id of a topic, which another one of the same name does not have. */
async function topicIdOf(session: Connection, name: string): Promise<string | undefined> {
  const request = { topics: [{ id: noId, name }], allowAutoCreation: false, includeAuthorizedOperations: false };
  const [found] = (await session.call(metadata, request)).topics;
  return found?.errorCode === errorCodes.unknownTopicOrPartition ? undefined : found?.id;
}

async function withDetails(sessions: Sessions, found: readonly EngineTopic[]): Promise<EngineTopic[]> {
  if (found.length === 0) return [];
  const [configs, sizes, ends] = await Promise.all([
    configsOf(
      sessions[0],
      found.map(({ name }) => name),
    ),
    sizesOf(sessions, found),
    endpointsOf(
      sessions,
      found.map(({ name, partitions }) => ({ topic: name, partitions: range(partitions) })),
    ),
  ]);
  return found.map((topic) => ({
    ...topic,
    sizeBytes: sizes.get(topic.name) ?? 0,
    config: configs.get(topic.name) ?? {},
    partitionStates: topic.partitionStates
      .map((state) => ({ ...state, ...ends.get(`${topic.name} ${state.partition}`) }))
      .toSorted((a, b) => a.partition - b.partition),
  }));
}

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** The broker prints values in its own form: spaces, letter case and the digits of a number may differ. */
function hasSettings(config: Readonly<Record<string, string>>, { set, unset }: TopicChange): boolean {
  const current = new Map(Object.entries(config));
  const plain = (value: string) => value.replaceAll(/\s/g, "").toLowerCase();
  const isSame = (a: string, b: string) => plain(a) === plain(b) || (a.trim() !== "" && Number(a) === Number(b));
  const isSet = ([name, value]: readonly [string, string]) => isSame(current.get(name) ?? "", value);
  return Object.entries(set).every(isSet) && !unset.some((name) => current.has(name));
}

/** Settings that the topics have themselves. */
async function configsOf(session: Connection, names: readonly string[]): Promise<Map<string, Record<string, string>>> {
  const answer = await session.call(describeConfigs, {
    resources: names.map((name) => ({ type: topicType, name, keys: null })),
    includeSynonyms: false,
    includeDocumentation: false,
  });
  return new Map(
    answer.results.map(({ name, configs }) => [
      name,
      Object.fromEntries(
        configs.flatMap((each) =>
          each.source === sourceTopic && each.value !== null ? [[each.name, each.value]] : [],
        ),
      ),
    ]),
  );
}

/** Bytes of the topics' partitions, each counted once, at its largest replica. */
async function sizesOf(sessions: Sessions, found: readonly EngineTopic[]): Promise<Map<string, number>> {
  const requested = found.map(({ name, partitions }) => ({ name, partitions: range(partitions) }));
  const answers = await Promise.all(sessions.map((session) => session.call(describeLogDirs, { topics: requested })));
  const largest = new Map<string, Map<number, number>>();
  for (const answer of answers) {
    requireSuccess("DescribeLogDirs", answer);
    for (const { name, partitions } of answer.directories.flatMap(({ topics: stored }) => stored)) {
      const sizes = largest.get(name) ?? new Map<number, number>();
      for (const { index, sizeBytes } of partitions) sizes.set(index, Math.max(sizes.get(index) ?? 0, sizeBytes));
      largest.set(name, sizes);
    }
  }
  return new Map([...largest].map(([name, sizes]) => [name, [...sizes.values()].reduce((sum, size) => sum + size, 0)]));
}

/** The engine itself chooses while members join: a broker that ran before them has a smaller default. */
async function defaultFactorOf(instance: Instance, session: Connection): Promise<number> {
  const { brokers } = await readPartitions(session);
  const factor = replicationFactorOf(instance);
  return brokers.length >= factor ? factor : -1;
}

/** Throws EngineRefused if the service would have too many partitions. */
async function requireCapacity(session: Connection, added: number, max: number): Promise<void> {
  const present = (await topicsOf(session, null)).reduce((sum, { partitions }) => sum + partitions, 0);
  if (present + added <= max) return;
  const message = `The service would have ${present + added} partitions: its plan has at most ${max}.`;
  throw new EngineRefused(message, { code: "limit_reached" });
}

/** A repeated request finds its own topic; any other one is refused. */
async function requireOwn(instance: Instance, sessions: Sessions, topic: NewTopic): Promise<void> {
  const { name, partitions, replicationFactor, config, mayExist } = topic;
  const [found] = mayExist ? await withDetails(sessions, await topicsOf(sessions[0], [name])) : [];
  const isSame =
    found !== undefined &&
    (partitions ?? found.partitions) === found.partitions &&
    (replicationFactor ?? found.replicationFactor) === found.replicationFactor &&
    Object.entries(config).every(([key, value]) => Object.hasOwn(found.config, key) && found.config[key] === value);
  if (isSame) return;
  const isAutomatic = effectiveParameters(instance).get("auto.create.topics.enable") === "true";
  const cause = isAutomatic
    ? " A client that writes as an admin creates topics too, also right after a deletion: change this one, or set auto.create.topics.enable to false."
    : "";
  throw new EngineRefused(`The service has a topic ${name} already.${cause}`, { code: "name_taken" });
}

/** Throws EngineRefused for batches that are larger than the broker's own limit can be. */
function requireBatchSize({ spec }: Instance, config: Readonly<Record<string, string>>): void {
  const [name, largest] = ["max.message.bytes", kafkaBatchBytes(planOf(spec))];
  if (Number(lookUp(config, name) ?? 0) > largest)
    throw new EngineRefused(`${name} is at most ${largest} in a service of this plan.`);
}

async function addPartitions(session: Connection, before: EngineTopic, change: TopicChange): Promise<void> {
  const { name, partitions } = change;
  if (partitions === undefined || partitions === before.partitions) return;
  if (partitions < before.partitions)
    throw new EngineRefused(`${name} has ${before.partitions} partitions, and their number can only grow.`);
  await requireCapacity(session, partitions - before.partitions, change.partitionsMax);
  const request = { topics: [{ name, count: partitions, assignments: null }], timeoutMs, validateOnly: false };
  const { results } = await session.call(createPartitions, request);
  for (const result of results) refuse(() => requireSuccess("CreatePartitions", result));
}

async function alterConfig(session: Connection, { name, set, unset }: TopicChange): Promise<void> {
  const configs = [
    ...Object.entries(set).map(([key, value]) => ({ name: key, operation: operations.set, value })),
    ...unset.map((key) => ({ name: key, operation: operations.unset, value: null })),
  ];
  if (configs.length === 0) return;
  const request = { resources: [{ type: topicType, name, configs }], validateOnly: false };
  const { results } = await session.call(incrementalAlterConfigs, request);
  for (const result of results) refuse(() => requireSuccess("IncrementalAlterConfigs", result));
}
