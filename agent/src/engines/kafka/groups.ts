import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import type { EngineGroup, EngineGroupOffset, GroupReset, GroupsFacet } from "../topics-facet.ts";
import { isReserved } from "./layout.ts";
import { earliest, latest, offsetsAt, type TopicPartitions } from "./offsets.ts";
import { deleteGroups, listGroups, metadata, offsetCommit, offsetFetch } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, requireSuccess } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";

/** Groups of a call; each answer has the offsets of all their partitions. */
const groupsPerCall = 100;
const noId = Buffer.alloc(16).toString("base64url");

/** Consumer groups of users that this broker coordinates, with the offsets that they committed. */
export const groups: GroupsFacet = {
  list: (instance, names, signal) =>
    withSession(instance, signal, async (session) => {
      const all = await groupsOf(session);
      return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
    }),

  reset: (instance, reset, signal) => withSession(instance, signal, (session) => resetOffsets(session, reset)),

  drop: (instance, name, signal) =>
    withSession(instance, signal, async (session) => {
      if (isReserved(name)) return { existed: false };
      const { results } = await session.call(deleteGroups, { groups: [name] });
      const code = results[0]?.errorCode ?? 0;
      if (code === errorCodes.groupIdNotFound) return { existed: false };
      if (code === errorCodes.nonEmptyGroup) throw active(name);
      for (const result of results) requireSuccess("DeleteGroups", result);
      return { existed: true };
    }),
};

function active(name: string): EngineRefused {
  const message = `The group ${name} has members. Stop its consumers first.`;
  return new EngineRefused(message, { code: "group_active" });
}

/** Records that the groups have not consumed: the sum over all groups and partitions. */
export function consumerLag(instance: Instance, signal: AbortSignal): Promise<number> {
  return withSession(instance, signal, async (session) => {
    const offsets = (await groupsOf(session)).flatMap((group) => group.offsets);
    return offsets.reduce((sum, { offset, endOffset }) => sum + Math.max(endOffset - offset, 0), 0);
  });
}

/** Groups of users by name. Partitions that this broker does not lead are left out. */
async function groupsOf(session: Connection): Promise<EngineGroup[]> {
  const listed = await session.call(listGroups, { states: [] });
  requireSuccess("ListGroups", listed);
  const found = listed.groups.filter(({ id }) => !isReserved(id)).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const committed = new Map<string, Omit<EngineGroupOffset, "endOffset">[]>();
  for (let at = 0; at < found.length; at += groupsPerCall) {
    const requested = found.slice(at, at + groupsPerCall).map(({ id }) => ({ id, topics: null }));
    const answer = await session.call(offsetFetch, { groups: requested, requireStable: false });
    for (const { id, topics } of answer.groups)
      committed.set(
        id,
        topics.flatMap(({ name: topic, partitions }) =>
          partitions.flatMap(({ index: partition, offset }) => (offset < 0 ? [] : [{ topic, partition, offset }])),
        ),
      );
  }
  const ends = await offsetsAt(session, partitionsOf([...committed.values()].flat()), latest);
  return found.map(({ id, state }) => ({
    name: id,
    state,
    offsets: (committed.get(id) ?? []).flatMap((each) => {
      const endOffset = ends.get(`${each.topic} ${each.partition}`);
      return endOffset === undefined ? [] : [{ ...each, endOffset }];
    }),
  }));
}

/** Each partition once, by topic. */
function partitionsOf(offsets: readonly { readonly topic: string; readonly partition: number }[]): TopicPartitions[] {
  return [...Map.groupBy(offsets, ({ topic }) => topic)].map(([topic, each]) => ({
    topic,
    partitions: [...new Set(each.map(({ partition }) => partition))],
  }));
}

async function resetOffsets(session: Connection, { group, topic, to }: GroupReset): Promise<void> {
  const listed = await session.call(listGroups, { states: [] });
  requireSuccess("ListGroups", listed);
  const found = listed.groups.find(({ id }) => id === group);
  if (found === undefined || isReserved(group))
    throw new EngineRefused(`The engine has no consumer group ${group}.`, { code: "group_not_found" });
  if (found.state !== "Empty" && found.state !== "Dead") throw active(group);
  const numbers = await partitionNumbers(session, topic);
  const of = [{ topic, partitions: numbers }];
  const timestamp = to === "earliest" ? earliest : to === "latest" ? latest : to;
  const [chosen, ends] = await Promise.all([offsetsAt(session, of, timestamp), offsetsAt(session, of, latest)]);
  const partitions = numbers.flatMap((index) => {
    const key = `${topic} ${index}`;
    const at = chosen.get(key);
    // No record is as new as the time, so the group continues at the end.
    const offset = at === undefined || at < 0 ? ends.get(key) : at;
    return offset === undefined ? [] : [{ index, offset, leaderEpoch: -1, metadata: null }];
  });
  const answer = await session.call(offsetCommit, {
    group,
    generation: -1,
    memberId: "",
    instanceId: null,
    topics: [{ name: topic, partitions }],
  });
  const codes = answer.topics.flatMap(({ partitions: results }) => results.map(({ errorCode }) => errorCode));
  // A consumer joined after the check.
  if (codes.some((code) => code === errorCodes.unknownMember || code === errorCodes.illegalGeneration))
    throw active(group);
  for (const errorCode of codes) requireSuccess("OffsetCommit", { errorCode });
}

async function partitionNumbers(session: Connection, topic: string): Promise<number[]> {
  const request = { topics: [{ id: noId, name: topic }], allowAutoCreation: false, includeAuthorizedOperations: false };
  const [found] = (await session.call(metadata, request)).topics;
  if (found === undefined || found.errorCode !== 0 || topic.startsWith("__") || isReserved(topic))
    throw new EngineRefused(`The engine has no topic ${topic}.`, { code: "topic_not_found" });
  return found.partitions.map(({ index }) => index).toSorted((a, b) => a - b);
}
