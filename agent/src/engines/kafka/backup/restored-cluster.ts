import { setTimeout as sleep } from "node:timers/promises";
import { loadCoordinators } from "../coordinators.ts";
import { endpointsOf } from "../offsets.ts";
import { createTopics, initProducerId, offsetCommit } from "../protocol/apis.ts";
import type { Connection } from "../protocol/connection.ts";
import { isTransient, KafkaRefusal, requireSuccess } from "../protocol/protocol-error.ts";
import { untilApplied } from "../until-applied.ts";
import { readPartitions } from "../cluster-view.ts";
import type { SnapshotContents, StoredTopic } from "./contents.ts";

const timeoutMs = 30_000;
const createdWithinMs = 3_600_000;
/** Partitions of a call. */
const partitionsPerCall = 1_000;
const producerIdsPerCall = 500;
const retryMs = 100;

const presentIn = ({ topics }: SnapshotContents): StoredTopic[] =>
  topics.filter(({ partitions }) => partitions.length > 0);

/** Creates the topics with one replica each; later members raise it. */
export async function createStoredTopics(
  session: Connection,
  contents: SnapshotContents,
  signal: AbortSignal,
): Promise<void> {
  const topics = presentIn(contents);
  // One by one, because a call may create a limited number of partitions.
  for (const { name, partitions, config } of topics) {
    const requested = {
      name,
      partitions: partitions.length,
      replicationFactor: 1,
      assignments: [],
      configs: Object.entries(config).map(([key, value]) => ({ name: key, value })),
    };
    const answer = await session.call(createTopics, { topics: [requested], timeoutMs, validateOnly: false });
    for (const result of answer.topics) requireSuccess("CreateTopics", result);
  }
  // The broker creates the directory of a log when it becomes the leader.
  const expected = topics.reduce((sum, { partitions }) => sum + partitions.length, 0);
  const names = new Set(topics.map(({ name }) => name));
  const areCreated = async () => {
    const { partitions } = await readPartitions(session);
    const led = partitions.filter(({ topic, leader }) => leader >= 0 && names.has(topic));
    return led.length === expected && (await endsOf(session, contents)).size === expected;
  };
  await untilApplied(signal, areCreated, createdWithinMs);
}

async function endsOf(session: Connection, contents: SnapshotContents) {
  const found: (readonly [string, { readonly startOffset: number; readonly endOffset: number }])[] = [];
  for (const { name, partitions } of presentIn(contents))
    for (let at = 0; at < partitions.length; at += partitionsPerCall) {
      const numbers = partitions.slice(at, at + partitionsPerCall).map((_, index) => at + index);
      found.push(...(await endpointsOf([session], [{ topic: name, partitions: numbers }])));
    }
  return new Map(found);
}

/** Throws if a partition does not have exactly the offsets of the snapshot. */
export async function requireOffsets(session: Connection, contents: SnapshotContents): Promise<void> {
  const ends = await endsOf(session, contents);
  for (const { name, partitions } of presentIn(contents))
    for (const [partition, { start, end }] of partitions.entries()) {
      const found = ends.get(`${name} ${partition}`);
      if (found?.startOffset !== start || found.endOffset !== end)
        throw new Error(
          `${name} ${partition} was restored from ${found?.startOffset} to ${found?.endOffset}, not ${start} to ${end}`,
        );
    }
}

/** Commits the offsets of groups, none of which is ahead of its data. Their topic has one replica at first, too. */
export async function commitOffsets(
  session: Connection,
  number: number,
  contents: SnapshotContents,
  signal: AbortSignal,
): Promise<void> {
  await retried(() => loadCoordinators(session, number), signal);
  const topics = new Map(presentIn(contents).map(({ name, partitions }) => [name, partitions]));
  for (const { name: group, offsets } of contents.groups) {
    const byTopic = Map.groupBy(
      offsets.flatMap(({ topic, partition, offset, metadata }) => {
        const end = topics.get(topic)?.[partition]?.end;
        if (end === undefined) return [];
        return [{ topic, index: partition, offset: Math.min(offset, end), leaderEpoch: -1, metadata }];
      }),
      ({ topic }) => topic,
    );
    if (byTopic.size === 0) continue;
    const requested = [...byTopic].map(([name, partitions]) => ({ name, partitions }));
    const request = { group, generation: -1, memberId: "", instanceId: null, topics: requested };
    const commit = async () => {
      const answer = await session.call(offsetCommit, request);
      for (const { partitions } of answer.topics)
        for (const result of partitions) requireSuccess("OffsetCommit", result);
    };
    await retried(commit, signal);
  }
}

/**
 * Takes the ids of producers up to the greatest one in the records. A new producer with such an id would continue the
 * former one's sequence: its first records would count as repetitions, and be acknowledged without being stored.
 */
export async function passProducerIds(session: Connection, { maxProducerId }: SnapshotContents): Promise<void> {
  const request = { transactionalId: null, timeoutMs, producerId: -1, producerEpoch: -1 };
  for (let last = -1; last < maxProducerId; ) {
    const count = Math.min(producerIdsPerCall, maxProducerId - last);
    const answers = await Promise.all(Array.from({ length: count }, () => session.call(initProducerId, request)));
    for (const answer of answers)
      if (answer.errorCode === 0) last = Math.max(last, answer.producerId);
      else if (!isTransient(new KafkaRefusal("InitProducerId", answer.errorCode, null)))
        requireSuccess("InitProducerId", answer);
  }
}

async function retried(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) throw error;
      // The broker still loads the groups.
      await sleep(retryMs, undefined, { signal });
    }
  }
}
