import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { create } from "@bufbuild/protobuf";
import type { Value } from "@bufbuild/protobuf/wkt";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  AlterEngineTopicSchema,
  CreateEngineTopicSchema,
  DropEngineTopicSchema,
  type EngineTopic,
  ListEngineTopicsSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TopicService } from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import { type CatalogData, planOf } from "#catalog/catalog.ts";
import { auditOf } from "#access/caller.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import { type Cursors, pageByName } from "#kernel/page/cursor.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";

export interface TopicApiDeps {
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly cursors: Cursors;
  readonly catalog: CatalogData;
  readonly auditedActs: Pick<AuditedActs, "act">;
}

/** Partitions of a service for each vCPU of its plan, all topics together. */
const partitionsPerVcpu = 2_000;

/** Throws NOT_SUPPORTED for an engine without topics, and WRONG_STATE while the service does not run. */
export function requireTopics(access: ServiceAccess, serviceId: string, call: Call): ManagedServiceObject {
  const { databaseType } = access.require(serviceId, call).object.spec;
  if (engineOf(databaseType)?.hasTopics !== true)
    throw new HoldfastError("NOT_SUPPORTED", `Services of ${databaseType} have no topics and consumer groups.`);
  return access.requireRunning(serviceId, call).object;
}

/** The RPCs of topics. Nothing is stored: each call queries the engine, and a change is audited with its outcome. */
export function createTopicApi({ access, tasks, cursors, catalog, auditedActs }: TopicApiDeps): ServedService {
  async function topicsOf(service: ManagedServiceObject, names: readonly string[], call: Call): Promise<EngineTopic[]> {
    const value = create(ListEngineTopicsSchema, { names: [...names] });
    return (await tasks.run(service, { case: "listEngineTopics", value }, call.signal)).topics;
  }

  async function topicOf(service: ManagedServiceObject, name: string, call: Call) {
    const [topic] = await topicsOf(service, [name], call);
    if (topic === undefined) throw new HoldfastError("TOPIC_NOT_FOUND", `The service has no topic ${name}.`);
    return messageOf(service, topic);
  }

  const unanswered = createUnanswered();
  const partitionsMax = ({ spec }: ManagedServiceObject) => planOf(catalog, spec.planName).vcpu * partitionsPerVcpu;
  const entryOf = (call: Call, action: string, serviceId: string, name: string) =>
    auditOf(call, action, "managed-service", serviceId, name);

  const handlers: Handlers<typeof TopicService> = {
    async listTopics(request, call) {
      const service = requireTopics(access, request.serviceId, call);
      const page = cursors.open(call, `topics ${request.serviceId}`, null, request);
      const { items, next } = pageByName(await topicsOf(service, [], call), ({ name }) => name, page);
      // Settings and sizes are read for one page alone.
      const names = items.map(({ name }) => name);
      const details = names.length === 0 ? [] : await topicsOf(service, names, call);
      const topics = details.map((topic) => ({ ...messageOf(service, topic), partitionStates: [] }));
      return { topics, ...page.next(next) };
    },

    async createTopic({ serviceId, name, partitions, replicationFactor, config }, call) {
      const service = requireTopics(access, serviceId, call);
      if ((replicationFactor ?? 1) > service.spec.nodes.length)
        throw invalid({
          field: "replication_factor",
          code: "too_large",
          detail: `must be at most ${service.spec.nodes.length}, the number of nodes`,
        });
      const { set, unset } = settingsOf(config);
      if (unset.length > 0) throw invalid({ field: "config", code: "invalid", detail: "must have no null values" });
      const send = () => {
        const value = create(CreateEngineTopicSchema, {
          name,
          mayExist: unanswered.take(call),
          ...(partitions !== undefined && { partitions }),
          ...(replicationFactor !== undefined && { replicationFactor }),
          config: set,
          partitionsMax: partitionsMax(service),
        });
        return tasks.run(service, { case: "createEngineTopic", value }, call.signal);
      };
      return unanswered.noting(call, async () => {
        await auditedActs.act(entryOf(call, "topic.create", serviceId, name), send);
        return topicOf(service, name, call);
      });
    },

    getTopic: ({ serviceId, name }, call) => topicOf(requireTopics(access, serviceId, call), name, call),

    async updateTopic({ serviceId, name, partitions, config }, call) {
      const service = requireTopics(access, serviceId, call);
      const value = create(AlterEngineTopicSchema, {
        name,
        ...(partitions !== undefined && { partitions }),
        ...settingsOf(config),
        partitionsMax: partitionsMax(service),
      });
      await auditedActs.act(entryOf(call, "topic.update", serviceId, name), () =>
        tasks.run(service, { case: "alterEngineTopic", value }, call.signal),
      );
      return topicOf(service, name, call);
    },

    async deleteTopic({ serviceId, name }, call) {
      const service = requireTopics(access, serviceId, call);
      const value = create(DropEngineTopicSchema, { name });
      await auditedActs.act(entryOf(call, "topic.delete", serviceId, name), async () => {
        const { existed } = await tasks.run(service, { case: "dropEngineTopic", value }, call.signal);
        if (!existed) throw new HoldfastError("TOPIC_NOT_FOUND", `The service has no topic ${name}.`);
      });
      return {};
    },
  };
  return serve(TopicService, handlers);
}

/** Bound of the requests below; the oldest are forgotten, and their repetition is refused. */
const unansweredMax = 1_000;

/**
 * Requests with an Idempotency-Key that the engine did not answer, so that a repetition by the same key may find their
 * work done. In this process only.
 */
function createUnanswered() {
  const requests = new Set<string>();
  const keyOf = ({ idempotency }: Call) =>
    idempotency && `${idempotency.scope} ${idempotency.key} ${idempotency.bodyHash}`;
  return {
    /** True if the call repeats such a request. */
    take: (call: Call): boolean => requests.delete(keyOf(call) ?? ""),

    /** Does the work, and notes the call if its outcome is unknown afterwards. */
    async noting<T>(call: Call, work: () => Promise<T>): Promise<T> {
      try {
        return await work();
      } catch (error) {
        const isAnswered = error instanceof HoldfastError && error.key !== "MACHINE_UNREACHABLE";
        const key = keyOf(call);
        if (!isAnswered && key !== undefined) {
          requests.add(key);
          const [oldest] = requests;
          if (requests.size > unansweredMax && oldest !== undefined) requests.delete(oldest);
        }
        throw error;
      }
    },
  };
}

function messageOf({ metadata }: ManagedServiceObject, topic: EngineTopic) {
  const { name, partitions, replicationFactor, sizeBytes, config } = topic;
  const partitionStates = topic.partitionStates.map(
    ({ partition, leader, replicas, inSync, startOffset, endOffset }) => ({
      partition,
      ...(leader !== undefined && { leader }),
      replicas,
      inSync,
      startOffset,
      endOffset,
    }),
  );
  return { serviceId: metadata.id, name, partitions, replicationFactor, sizeBytes, config, partitionStates };
}

/** Settings as the engine's texts, and names of those that are null. Throws INVALID_REQUEST for other values. */
function settingsOf(config: Readonly<Record<string, Value>>): { set: Record<string, string>; unset: string[] } {
  const set: [name: string, value: string][] = [];
  const unset: string[] = [];
  for (const [name, { kind }] of Object.entries(config)) {
    if (kind.case === "nullValue") unset.push(name);
    else if (kind.case === "stringValue") set.push([name, kind.value]);
    else throw invalid({ field: "config", code: "invalid", detail: `${name} must be a string or null` });
  }
  return { set: Object.fromEntries(set), unset };
}
