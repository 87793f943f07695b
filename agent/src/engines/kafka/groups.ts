import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import type { EngineGroup, EngineGroupOffset, GroupReset, GroupsFacet } from "../topics-facet.ts";
import { isReserved } from "./layout.ts";
import { earliest, latest, offsetsAt, type TopicPartitions } from "./offsets.ts";
import { deleteGroups, listGroups, metadata, offsetCommit, offsetFetch } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, requireSuccess } from "./protocol/protocol-error.ts";
import { withAllSessions } from "./session.ts";

type CommittedOffset = Omit<EngineGroupOffset, "endOffset"> & { readonly metadata: string | null };

/** Groups of a call; each answer has the offsets of all their partitions. */
const groupsPerCall = 100;
const noId = Buffer.alloc(16).toString("base64url");

/**
 * Consumer groups of users with the offsets that they committed. Each group has a broker that coordinates it, and only
 * that broker lists and changes the group.
 */
export const groups: GroupsFacet = {
  list: (instance, names, signal) =>
    withAllSessions(instance, signal, async (sessions) => {
      const found = await Promise.all(sessions.map((session) => groupsOf(session, sessions)));
      const all = found.flat().toSorted((a, b) => (a.name < b.name ? -1 : 1));
      return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
    }),

  reset: (instance, reset, signal) =>
    withAllSessions(instance, signal, async (sessions) => {
      const session = await coordinatorOf(sessions, reset.group);
      if (session === undefined)
        throw new EngineRefused(`The engine has no consumer group ${reset.group}.`, { code: "group_not_found" });
      await resetOffsets(session, sessions, reset);
    }),

  drop: (instance, name, signal) =>
    withAllSessions(instance, signal, async (sessions) => {
      const session = await coordinatorOf(sessions, name);
      if (session === undefined) return { existed: false };
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

/** Records that the groups of this broker have not consumed: the sum over these groups and all partitions. */
export function consumerLag(instance: Instance, signal: AbortSignal): Promise<number> {
  return withAllSessions(instance, signal, async (sessions) => {
    const offsets = (await groupsOf(sessions[0], sessions)).flatMap((group) => group.offsets);
    return offsets.reduce((sum, { offset, endOffset }) => sum + Math.max(endOffset - offset, 0), 0);
  });
}

/** The broker that coordinates a group of users; undefined if none of them has the group. */
async function coordinatorOf(sessions: readonly Connection[], group: string): Promise<Connection | undefined> {
  if (isReserved(group)) return undefined;
  for (const session of sessions) {
    const listed = await session.call(listGroups, { states: [] });
    requireSuccess("ListGroups", listed);
    if (listed.groups.some(({ id }) => id === group)) return session;
  }
  return undefined;
}

/** Groups of users that one broker coordinates. Partitions that no broker leads are left out. */
async function groupsOf(session: Connection, sessions: readonly Connection[]): Promise<EngineGroup[]> {
  const { found, committed } = await readGroups(session);
  const ends = await offsetsAt(sessions, partitionsOf([...committed.values()].flat()), latest);
  return found.map(({ id, state }) => ({
    name: id,
    state,
    offsets: (committed.get(id) ?? []).flatMap((each) => {
      const endOffset = ends.get(`${each.topic} ${each.partition}`);
      const { topic, partition, offset } = each;
      return endOffset === undefined ? [] : [{ topic, partition, offset, endOffset }];
    }),
  }));
}

/** Offsets of all groups of users, without those of open transactions. */
export function committedOffsets(instance: Instance, signal: AbortSignal) {
  return withAllSessions(instance, signal, async (sessions) => {
    const all = await Promise.all(sessions.map(readGroups));
    return all.flatMap(({ committed }) => [...committed].map(([name, offsets]) => ({ name, offsets })));
  });
}

/** Groups of users that one broker coordinates, with their offsets. */
async function readGroups(session: Connection) {
  const listed = await session.call(listGroups, { states: [] });
  requireSuccess("ListGroups", listed);
  const found = listed.groups.filter(({ id }) => !isReserved(id));
  const committed = new Map<string, CommittedOffset[]>();
  for (let at = 0; at < found.length; at += groupsPerCall) {
    const requested = found.slice(at, at + groupsPerCall).map(({ id }) => ({ id, topics: null }));
    const answer = await session.call(offsetFetch, { groups: requested, requireStable: false });
    for (const { id, topics } of answer.groups)
      committed.set(
        id,
        topics.flatMap(({ name: topic, partitions }) =>
          partitions.flatMap(({ index: partition, offset, metadata: text }) =>
            offset < 0 ? [] : [{ topic, partition, offset, metadata: text }],
          ),
        ),
      );
  }
  return { found, committed };
}

/** Each partition once, by topic. */
function partitionsOf(offsets: readonly { readonly topic: string; readonly partition: number }[]): TopicPartitions[] {
  return [...Map.groupBy(offsets, ({ topic }) => topic)].map(([topic, each]) => ({
    topic,
    partitions: [...new Set(each.map(({ partition }) => partition))],
  }));
}

async function resetOffsets(
  session: Connection,
  sessions: readonly Connection[],
  { group, topic, to }: GroupReset,
): Promise<void> {
  const listed = await session.call(listGroups, { states: [] });
  requireSuccess("ListGroups", listed);
  const found = listed.groups.find(({ id }) => id === group);
  if (found === undefined)
    throw new EngineRefused(`The engine has no consumer group ${group}.`, { code: "group_not_found" });
  if (found.state !== "Empty" && found.state !== "Dead") throw active(group);
  const numbers = await partitionNumbers(session, topic);
  const of = [{ topic, partitions: numbers }];
  const timestamp = to === "earliest" ? earliest : to === "latest" ? latest : to;
  const [chosen, ends] = await Promise.all([offsetsAt(sessions, of, timestamp), offsetsAt(sessions, of, latest)]);
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
