import { create } from "@bufbuild/protobuf";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  DropEngineGroupSchema,
  type EngineGroup,
  ListEngineGroupsSchema,
  ResetEngineGroupSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { ConsumerGroupService } from "@holdfast/proto/holdfast/v1/topic_pb.ts";
import { auditOf } from "#access/caller.ts";
import { pageByName } from "#kernel/page/cursor.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { requireTopics, type TopicApiDeps } from "./topic-api.ts";

/** The RPCs of consumer groups. Each call queries the engine, and a change is audited with its outcome. */
export function createConsumerGroupApi(deps: Omit<TopicApiDeps, "catalog">): ServedService {
  const { access, tasks, cursors, auditedActs } = deps;

  async function groupsOf(
    service: ManagedServiceObject,
    { names, summarized }: { readonly names: readonly string[]; readonly summarized: boolean },
    call: Call,
  ): Promise<EngineGroup[]> {
    const value = create(ListEngineGroupsSchema, { names: [...names], summarized });
    return (await tasks.run(service, { case: "listEngineGroups", value }, call.signal)).groups;
  }

  async function groupOf(service: ManagedServiceObject, name: string, call: Call) {
    const [group] = await groupsOf(service, { names: [name], summarized: false }, call);
    if (group === undefined) throw missing(name);
    return messageOf(service, group);
  }

  const entryOf = (call: Call, action: string, serviceId: string, name: string) =>
    auditOf(call, action, "managed-service", serviceId, name);

  const handlers: Handlers<typeof ConsumerGroupService> = {
    async listConsumerGroups(request, call) {
      const service = requireTopics(access, request.serviceId, call);
      const page = cursors.open(call, `consumer groups ${request.serviceId}`, null, request);
      const all = await groupsOf(service, { names: [], summarized: true }, call);
      const { items, next } = pageByName(all, ({ name }) => name, page);
      // Offsets are read for one page alone.
      const names = items.map(({ name }) => name);
      const found = names.length === 0 ? [] : await groupsOf(service, { names, summarized: true }, call);
      const consumerGroups = found.map((group) => ({ ...messageOf(service, group), offsets: [] }));
      return { consumerGroups, ...page.next(next) };
    },

    getConsumerGroup: ({ serviceId, name }, call) => groupOf(requireTopics(access, serviceId, call), name, call),

    async resetConsumerGroup({ serviceId, name, topic, to }, call) {
      const service = requireTopics(access, serviceId, call);
      const target = targetOf(to);
      const value = create(ResetEngineGroupSchema, { group: name, topic, to: target });
      await auditedActs.act(entryOf(call, "consumer-group.reset", serviceId, name), () =>
        tasks.run(service, { case: "resetEngineGroup", value }, call.signal),
      );
      return groupOf(service, name, call);
    },

    async deleteConsumerGroup({ serviceId, name }, call) {
      const service = requireTopics(access, serviceId, call);
      const value = create(DropEngineGroupSchema, { name });
      await auditedActs.act(entryOf(call, "consumer-group.delete", serviceId, name), async () => {
        const { existed } = await tasks.run(service, { case: "dropEngineGroup", value }, call.signal);
        if (!existed) throw missing(name);
      });
      return {};
    },
  };
  return serve(ConsumerGroupService, handlers);
}

function missing(name: string): HoldfastError {
  return new HoldfastError("CONSUMER_GROUP_NOT_FOUND", `The service has no consumer group ${name}.`);
}

function messageOf({ metadata }: ManagedServiceObject, { name, state, lag: read, offsets: committed }: EngineGroup) {
  const offsets = committed.map(({ topic, partition, offset, endOffset }) => {
    const behind = endOffset - offset;
    return { topic, partition, offset, endOffset, lag: behind > 0n ? behind : 0n };
  });
  // An older agent returns offsets in place of the lag.
  const lag = read ?? offsets.reduce((sum, each) => sum + each.lag, 0n);
  return { serviceId: metadata.id, name, state, lag, offsets };
}

/** Throws INVALID_REQUEST for any other text. */
function targetOf(to: string) {
  if (to === "earliest" || to === "latest") return { case: to, value: true } as const;
  const timeMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(to) ? Date.parse(to) : Number.NaN;
  if (Number.isNaN(timeMs) || timeMs < 0)
    throw invalid({
      field: "to",
      code: "invalid",
      detail: "must be earliest, latest, or a time such as 2026-11-28T12:00:00Z",
    });
  return { case: "timeMs", value: BigInt(timeMs) } as const;
}
