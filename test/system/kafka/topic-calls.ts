import { ConsumerGroupService, TopicService } from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import type { ConsumerGroup, Topic } from "@holdfast/sdk/index.ts";
import { createNodeClient } from "@holdfast/sdk/node/index.ts";
import type { GrpcChannel } from "@holdfast/testing/api/grpc-calls.ts";
import type { PageJson } from "@holdfast/testing/api/service-json.ts";
import type { CommandLine } from "@holdfast/testing/platform/command-line.ts";
import { grpcAs } from "@holdfast/testing/platform/organizations.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";

type TopicView = Pick<Topic, "partitions" | "config">;
type GroupView = Pick<ConsumerGroup, "state" | "lag">;

/** All calls about topics and consumer groups of one service, by one of the platform's interfaces. */
export interface TopicCalls {
  /** With two partitions that retain their records for a day. */
  create(name: string): Promise<TopicView>;
  list(): Promise<string[]>;
  get(name: string): Promise<TopicView>;
  /** To three partitions that retain their records as the service does. */
  update(name: string): Promise<TopicView>;
  delete(name: string): Promise<void>;
  groups(): Promise<string[]>;
  group(name: string): Promise<GroupView>;
  reset(name: string, topic: string, to: string): Promise<GroupView>;
  deleteGroup(name: string): Promise<void>;
}

const day = "86400000";
const created = { partitions: 2, config: { "retention.ms": day } };
const changed = { partitions: 3, config: { "retention.ms": null } };

export function topicCallsByRest({ rest }: Platform, serviceId: string): TopicCalls {
  const topics = `/managed-services/${serviceId}/topics`;
  const groups = `/managed-services/${serviceId}/consumer-groups`;
  return {
    create: async (name) => expectStatus(await rest.post<Topic>(topics, { name, ...created }), 201).json,
    list: async () => namesOf(expectStatus(await rest.get<PageJson<"topics", Topic>>(topics), 200).json.topics),
    get: async (name) => expectStatus(await rest.get<Topic>(`${topics}/${name}`), 200).json,
    update: async (name) => expectStatus(await rest.patch<Topic>(`${topics}/${name}`, changed), 200).json,
    delete: async (name) => void expectStatus(await rest.delete(`${topics}/${name}`), 204),
    groups: async () =>
      namesOf(
        expectStatus(await rest.get<PageJson<"consumer_groups", ConsumerGroup>>(groups), 200).json.consumer_groups,
      ),
    group: async (name) => expectStatus(await rest.get<ConsumerGroup>(`${groups}/${name}`), 200).json,
    reset: async (name, topic, to) =>
      expectStatus(await rest.post<ConsumerGroup>(`${groups}/${name}/offsets`, { topic, to }), 200).json,
    deleteGroup: async (name) => void expectStatus(await rest.delete(`${groups}/${name}`), 204),
  };
}

export function topicCallsBySdk({ directory }: Platform, serviceId: string): TopicCalls {
  const { topics, consumerGroups } = createNodeClient({ dataDirectory: directory });
  const all = async <T>(list: AsyncIterable<T>) => Array.fromAsync(list);
  return {
    create: (name) => topics.create(serviceId, { name, ...created }),
    list: async () => namesOf(await all(topics.list(serviceId))),
    get: (name) => topics.get(serviceId, name),
    update: (name) => topics.update(serviceId, name, changed),
    delete: (name) => topics.delete(serviceId, name),
    groups: async () => namesOf(await all(consumerGroups.list(serviceId))),
    group: (name) => consumerGroups.get(serviceId, name),
    reset: (name, topic, to) => consumerGroups.reset(serviceId, name, { topic, to }),
    deleteGroup: (name) => consumerGroups.delete(serviceId, name),
  };
}

/** The caller closes the channel. */
export function topicCallsByGrpc(
  platform: Platform,
  serviceId: string,
): TopicCalls & { readonly channel: GrpcChannel } {
  const channel = grpcAs(platform, platform.owner);
  const [topics, groups] = [channel.of(TopicService), channel.of(ConsumerGroupService)];
  const text = (value: string) => ({ kind: { case: "stringValue" as const, value } });
  const nothing = { kind: { case: "nullValue" as const, value: 0 } };
  const groupView = ({ state, lag }: { readonly state: string; readonly lag: bigint }) => ({ state, lag: Number(lag) });
  return {
    channel,
    create: (name) => topics.createTopic({ serviceId, name, partitions: 2, config: { "retention.ms": text(day) } }),
    list: async () => namesOf((await topics.listTopics({ serviceId })).topics),
    get: (name) => topics.getTopic({ serviceId, name }),
    update: (name) => topics.updateTopic({ serviceId, name, partitions: 3, config: { "retention.ms": nothing } }),
    delete: async (name) => void (await topics.deleteTopic({ serviceId, name })),
    groups: async () => namesOf((await groups.listConsumerGroups({ serviceId })).consumerGroups),
    group: async (name) => groupView(await groups.getConsumerGroup({ serviceId, name })),
    reset: async (name, topic, to) => groupView(await groups.resetConsumerGroup({ serviceId, name, topic, to })),
    deleteGroup: async (name) => void (await groups.deleteConsumerGroup({ serviceId, name })),
  };
}

export function topicCallsByCommand(shell: CommandLine, service: string): TopicCalls {
  async function run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await shell.runHere(args);
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
    return stdout;
  }
  const json = async <T>(...args: string[]) => JSON.parse(await run("--output", "json", ...args)) as T;
  return {
    create: (name) =>
      json<Topic>("topics", "create", service, name, "--partitions", "2", "--set", `retention.ms=${day}`),
    list: async () => namesOf(await json<Topic[]>("topics", "list", service)),
    get: (name) => json<Topic>("topics", "get", service, name),
    update: (name) => json<Topic>("topics", "update", service, name, "--partitions", "3", "--reset", "retention.ms"),
    delete: async (name) => void (await run("topics", "delete", service, name, "--yes")),
    groups: async () => namesOf(await json<ConsumerGroup[]>("groups", "list", service)),
    group: (name) => json<ConsumerGroup>("groups", "get", service, name),
    reset: (name, topic, to) =>
      json<ConsumerGroup>("groups", "reset", service, name, "--topic", topic, "--to", to, "--yes"),
    deleteGroup: async (name) => void (await run("groups", "delete", service, name, "--yes")),
  };
}

function namesOf(all: readonly { readonly name: string }[]): string[] {
  return all.map(({ name }) => name);
}
