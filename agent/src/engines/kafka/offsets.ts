import { listOffsets } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";

/** Timestamps that stand for the end and for the start of a partition. */
export const latest = -1;
export const earliest = -2;

export interface TopicPartitions {
  readonly topic: string;
  readonly partitions: readonly number[];
}

/**
 * Offsets of the first records with this time or a later one, by topic and number of the partition; without partitions
 * that none of these brokers leads. A partition without such a record has -1.
 */
export async function offsetsAt(
  sessions: readonly Connection[],
  of: readonly TopicPartitions[],
  timestamp: number,
): Promise<Map<string, number>> {
  const found = await Promise.all(sessions.map((session) => ledOffsets(session, of, timestamp)));
  return new Map(found.flatMap((each) => [...each]));
}

/** Offsets of the partitions that this broker leads. */
async function ledOffsets(
  session: Connection,
  of: readonly TopicPartitions[],
  timestamp: number,
): Promise<Map<string, number>> {
  if (of.length === 0) return new Map();
  const topics = of.map(({ topic, partitions }) => ({
    name: topic,
    partitions: partitions.map((index) => ({ index, leaderEpoch: -1, timestamp })),
  }));
  const answer = await session.call(listOffsets, { replicaId: -1, isolationLevel: 0, topics });
  return new Map(
    answer.topics.flatMap(({ name, partitions }) =>
      partitions.flatMap(({ index, errorCode, offset }) =>
        errorCode === 0 ? [[`${name} ${index}`, offset] as const] : [],
      ),
    ),
  );
}

/** First offset of each partition, and the one of its next record. */
export async function endpointsOf(
  sessions: readonly Connection[],
  of: readonly TopicPartitions[],
): Promise<Map<string, { readonly startOffset: number; readonly endOffset: number }>> {
  const [starts, ends] = await Promise.all([offsetsAt(sessions, of, earliest), offsetsAt(sessions, of, latest)]);
  return new Map([...ends].map(([key, endOffset]) => [key, { startOffset: starts.get(key) ?? 0, endOffset }]));
}
