import type { Instance } from "../engine-driver.ts";
import { EngineBusy, EngineRefused } from "../engine-errors.ts";
import type { EngineGroup, EngineGroupOffset, GroupReset, GroupsFacet } from "../topics-facet.ts";
import { withCoordinators } from "./coordinators.ts";
import { isReserved } from "./layout.ts";
import { earliest, latest, offsetsAt, type TopicPartitions } from "./offsets.ts";
import { deleteGroups, listGroups, metadata, offsetCommit, offsetFetch } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, requireSuccess } from "./protocol/protocol-error.ts";
import { type Sessions, withAllSessions } from "./session.ts";

type CommittedOffset = Omit<EngineGroupOffset, "endOffset"> & { readonly metadata: string | null };

/** Groups of a call; each answer has the offsets of all their partitions, which may be all of the service. */
const groupsPerCall = 20;
const noId = Buffer.alloc(16).toString("base64url");

/**
 * Consumer groups of users with the offsets that they committed. Each group has a broker that coordinates it, and only
 * that broker lists and changes the group.
 */
export const groups: GroupsFacet = {
  list: (instance, { names, summarized }, signal) =>
    withGroups(instance, signal, async (coordinators, sessions) => {
      const groups: EngineGroup[] = [];
      for (const session of coordinators) {
        const listed = await listedGroups(session, names);
        if (summarized && names.length === 0)
          groups.push(...listed.map(({ id: name, state }) => ({ name, state, lag: undefined, offsets: [] })));
        else
          for await (const group of readGroups(session, listed, sessions))
            groups.push(summarized ? { ...group, offsets: [] } : group);
      }
      return groups.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    }),

  reset: (instance, reset, signal) =>
    withGroups(instance, signal, async (coordinators, sessions) => {
      const session = await coordinatorOf(coordinators, reset.group);
      if (session === undefined)
        throw new EngineRefused(`The engine has no consumer group ${reset.group}.`, { code: "group_not_found" });
      await resetOffsets(session, sessions, reset);
    }),

  drop: (instance, name, signal) =>
    withCoordinators(instance, signal, async (coordinators) => {
      const session = await coordinatorOf(coordinators, name);
      if (session === undefined) return { existed: false };
      const { results } = await session.call(deleteGroups, { groups: [name] });
      const code = results[0]?.errorCode ?? 0;
      if (code === errorCodes.groupIdNotFound) return { existed: false };
      if (code === errorCodes.nonEmptyGroup) throw active(name);
      for (const result of results) requireSuccess("DeleteGroups", result);
      return { existed: true };
    }),
};

/** Sessions at the coordinators, and at all brokers that respond, which name the ends of the partitions. */
function withGroups<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (coordinators: readonly Connection[], sessions: Sessions) => Promise<T>,
): Promise<T> {
  return withCoordinators(instance, signal, (coordinators) =>
    withAllSessions(instance, signal, (sessions) => work(coordinators, sessions)),
  );
}

function active(name: string): EngineRefused {
  const message = `The group ${name} has members. Stop its consumers first.`;
  return new EngineRefused(message, { code: "group_active" });
}

/** Records that the groups of this broker have not consumed: the sum over these groups and all partitions. */
export function consumerLag(instance: Instance, signal: AbortSignal): Promise<number> {
  return withAllSessions(instance, signal, async (sessions) => {
    const [session] = sessions;
    let sum = 0;
    for await (const { lag } of readGroups(session, await listedGroups(session, []), sessions)) sum += lag;
    return sum;
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

/** Offsets of all groups of users, without those of open transactions. Throws EngineBusy as `withCoordinators` does. */
export function committedOffsets(instance: Instance, signal: AbortSignal) {
  return withCoordinators(instance, signal, async (coordinators) => {
    const all: { name: string; offsets: readonly CommittedOffset[] }[] = [];
    for (const session of coordinators)
      for (const part of partsOf(await listedGroups(session, []))) {
        const committed = await committedOf(session, part);
        all.push(...[...committed].map(([name, offsets]) => ({ name, offsets })));
      }
    return all;
  });
}

type ListedGroup = { readonly id: string; readonly state: string };

/** Groups of users that one broker coordinates: all, or those of `names`. */
async function listedGroups(session: Connection, names: readonly string[]): Promise<ListedGroup[]> {
  const listed = await session.call(listGroups, { states: [] });
  requireSuccess("ListGroups", listed);
  return listed.groups.filter(({ id }) => !isReserved(id) && (names.length === 0 || names.includes(id)));
}

/** Groups with their offsets and their lag, some read at a time. Partitions that no broker leads are left out. */
async function* readGroups(session: Connection, listed: readonly ListedGroup[], sessions: readonly Connection[]) {
  for (const part of partsOf(listed)) {
    const committed = await committedOf(session, part);
    const ends = await offsetsAt(sessions, partitionsOf([...committed.values()].flat()), latest);
    for (const { id: name, state } of part) {
      const offsets = (committed.get(name) ?? []).flatMap(({ topic, partition, offset }) => {
        const endOffset = ends.get(`${topic} ${partition}`);
        return endOffset === undefined ? [] : [{ topic, partition, offset, endOffset }];
      });
      const lag = offsets.reduce((sum, { offset, endOffset }) => sum + Math.max(endOffset - offset, 0), 0);
      yield { name, state, lag, offsets };
    }
  }
}

function* partsOf(listed: readonly ListedGroup[]): Generator<readonly ListedGroup[]> {
  for (let at = 0; at < listed.length; at += groupsPerCall) yield listed.slice(at, at + groupsPerCall);
}

/** Offsets that these groups committed, by the name of the group. */
async function committedOf(session: Connection, part: readonly ListedGroup[]): Promise<Map<string, CommittedOffset[]>> {
  const requested = part.map(({ id }) => ({ id, topics: null }));
  const answer = await session.call(offsetFetch, { groups: requested, requireStable: false });
  const offsetsOf = ({ topics }: (typeof answer.groups)[number]): CommittedOffset[] =>
    topics.flatMap(({ name: topic, partitions }) =>
      partitions.flatMap(({ index: partition, offset, metadata: text }) =>
        offset < 0 ? [] : [{ topic, partition, offset, metadata: text }],
      ),
    );
  // A broker that no longer coordinates a group, or has not loaded it yet, has none of its offsets.
  for (const group of answer.groups) requireSuccess("OffsetFetch", group);
  return new Map(answer.groups.map((group) => [group.id, offsetsOf(group)]));
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
  const partitions = numbers.map((index) => {
    const [at, end] = [chosen, ends].map((each) => each.get(`${topic} ${index}`));
    if (at === undefined || end === undefined)
      throw new EngineBusy(`The partition ${index} of ${topic} has no leader that responds. Try again.`);
    // No record is as new as the time, so the group continues at the end.
    return { index, offset: at < 0 ? end : at, leaderEpoch: -1, metadata: null };
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
