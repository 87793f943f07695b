import { setTimeout as sleep } from "node:timers/promises";
import type { OpenedSource } from "../../backup-facet.ts";
import type { Instance } from "../../engine-driver.ts";
import type { EngineTopic } from "../../topics-facet.ts";
import { committedOffsets } from "../groups.ts";
import { topics } from "../topics.ts";
import { kafkaVersion } from "../layout.ts";
import { frame, groupFrames } from "./frames.ts";
import { createLeaderSessions } from "./leader-sessions.ts";
import { createPartitionReader } from "./partition-reader.ts";

/** A broker that hangs does not close its connections. */
const respondsWithinMs = 60_000;
const readableWithinMs = 300_000;
const retryMs = 200;
/** A response has all settings of each topic. */
const topicsPerCall = 500;

/** Name of the only stream. */
export const snapshotStream = "topics";

/**
 * Reads the topics of users with their settings and the offsets of consumer groups, by Kafka's own protocol and without
 * a copy on disk. Batches are those of the log, so offsets, times, headers and transactions are the source's. The
 * groups come first: a group is never ahead of its data. There is no one moment across partitions.
 */
export async function openSnapshot(instance: Instance, signal: AbortSignal): Promise<OpenedSource> {
  const { dataTime, groups, topics: found } = await repeated((limit) => overview(instance, limit), signal);
  const leaders = createLeaderSessions(instance, signal);
  const reader = createPartitionReader(leaders);

  async function* snapshot(): AsyncGenerator<Buffer> {
    for (const { name, offsets } of groups) yield* groupFrames(name, offsets);
    for (const topic of found) yield* topicFrames(reader, topic);
    yield frame({ kind: "end" });
  }

  return {
    streams: [{ name: snapshotStream, bytes: snapshot() }],
    totalBytes: found.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    end: async () => ({ version: kafkaVersion, dataTime, positions: null }),
    close: async () => leaders.close(),
  };
}

async function overview(instance: Instance, signal: AbortSignal) {
  // Partitions are read later, so each has all records that were acknowledged before.
  const dataTime = new Date();
  const groups = await committedOffsets(instance, signal);
  const names = (await topics.list(instance, [], signal)).map(({ name }) => name);
  const found: EngineTopic[] = [];
  for (let at = 0; at < names.length; at += topicsPerCall)
    found.push(...(await topics.list(instance, names.slice(at, at + topicsPerCall), signal)));
  return { dataTime, groups, topics: found };
}

/** Repeats the work for some time: brokers that end are restarted, and others take over what they led. */
async function repeated<T>(work: (limit: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  const end = AbortSignal.timeout(readableWithinMs);
  for (;;) {
    try {
      return await work(AbortSignal.any([signal, AbortSignal.timeout(respondsWithinMs)]));
    } catch (error) {
      signal.throwIfAborted();
      if (end.aborted) throw error;
      await sleep(retryMs, undefined, { signal });
    }
  }
}

async function* topicFrames(
  reader: ReturnType<typeof createPartitionReader>,
  { name, partitions, config, partitionStates }: EngineTopic,
): AsyncGenerator<Buffer> {
  yield frame({ kind: "topic", name, partitions, config });
  for (const { partition, startOffset: start } of partitionStates) {
    yield frame({ kind: "partition", partition, start });
    const batches = reader.read({ topic: name, partition, start });
    let next = await batches.next();
    for (; next.done !== true; next = await batches.next()) {
      const content = Buffer.concat(next.value.map(({ bytes }) => bytes));
      yield frame({ kind: "batches", bytes: content.length });
      yield content;
    }
    if (next.value === undefined) return yield frame({ kind: "topic_deleted" });
    yield frame({ kind: "partition_end", ...next.value });
  }
}
