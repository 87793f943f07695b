import { earliest, latest } from "../offsets.ts";
import { fetchById, listOffsets } from "../protocol/apis.ts";
import type { Connection } from "../protocol/connection.ts";
import { errorCodes, KafkaRefusal, requireSuccess } from "../protocol/protocol-error.ts";
import { type Batch, batchesOf } from "./batches.ts";
import type { LeaderSessions, TopicPartition } from "./leader-sessions.ts";

const fetchBytes = 2 << 20;
/** IsolationLevel: only records of committed transactions and of aborted ones, up to the last stable offset. */
const readCommitted = 1;

/** A partition of a topic, and the offset of its first record. */
export interface PartitionPosition extends TopicPartition {
  readonly start: number;
}

/** Range of offsets that was read; undefined if the topic was deleted during the read. */
export type ReadRange = { readonly start: number; readonly end: number } | undefined;

/** Reads partitions, each from the broker that leads it. */
export function createPartitionReader(leaders: Pick<LeaderSessions, "at">) {
  function fetchAt(of: TopicPartition, offset: number, end: number) {
    const response = leaders.at(of, (session, topicId) => fetchFrom(session, topicId, of, { offset, end }));
    // A response that the caller does not wait for any more may be an error.
    response.catch(() => undefined);
    return response;
  }

  return {
    /**
     * Yields the partition's batches up to its last stable offset at the first read. Of an open transaction the end
     * would never come, and consumers of the copy would wait for it. The next batches are fetched while the caller
     * processes the last ones.
     */
    async *read(of: PartitionPosition): AsyncGenerator<readonly Batch[], ReadRange> {
      let { start } = of;
      let position = start;
      const end = await leaders.at(of, (session) => offsetOf(session, of, latest));
      if (end === undefined) return undefined;
      if (end <= start) return { start, end: start };
      let next = fetchAt(of, position, end);
      for (;;) {
        const found = await next;
        if (found === undefined) return undefined;
        if (found === "deleted") {
          // Retention deleted records that were read before or would be next, so the copy begins behind them, too.
          const first = await leaders.at(of, (session) => offsetOf(session, of, earliest));
          if (first === undefined) return undefined;
          if (first <= position) throw new Error(`${of.topic} ${of.partition} has no offset ${position}`);
          start = position = first;
          if (position >= end) return { start, end: position };
          next = fetchAt(of, position, end);
          continue;
        }
        const batches = [...batchesOf(found)].filter(
          ({ baseOffset, nextOffset }) => baseOffset < end && nextOffset > position,
        );
        const last = batches.at(-1);
        // Compaction removes records, so none may remain before the end.
        if (last === undefined) return { start, end };
        position = last.nextOffset;
        const isEnd = position >= end;
        if (!isEnd) next = fetchAt(of, position, end);
        yield batches;
        if (isEnd) return { start, end };
      }
    },
  };
}

/** Batches from an offset on. Throws a transient error while the leader does not know all that was committed. */
async function fetchFrom(
  session: Connection,
  id: string,
  { partition }: TopicPartition,
  { offset, end }: { readonly offset: number; readonly end: number },
): Promise<Buffer | "deleted"> {
  const position = { index: partition, leaderEpoch: -1, fetchOffset: offset, lastFetchedEpoch: -1, startOffset: -1 };
  const answer = await session.call(fetchById, {
    replicaId: -1,
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: fetchBytes,
    isolationLevel: readCommitted,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ id, partitions: [{ ...position, maxBytes: fetchBytes }] }],
    forgotten: [],
    rackId: "",
  });
  const found = answer.topics[0]?.partitions[0];
  if (found === undefined) throw new KafkaRefusal("Fetch", answer.errorCode, null);
  if (found.errorCode === errorCodes.offsetOutOfRange) return "deleted";
  requireSuccess("Fetch", found);
  // A new leader learns from its followers what is committed, and shows less of the log until then.
  if (found.lastStableOffset < end) throw new KafkaRefusal("Fetch", errorCodes.offsetNotAvailable, null);
  return found.records ?? Buffer.alloc(0);
}

/** The first offset, or the last stable one; a new leader refuses until it knows what is committed. */
async function offsetOf(session: Connection, { topic, partition }: TopicPartition, timestamp: number): Promise<number> {
  const partitions = [{ index: partition, leaderEpoch: -1, timestamp }];
  const request = { replicaId: -1, isolationLevel: readCommitted, topics: [{ name: topic, partitions }] };
  const found = (await session.call(listOffsets, request)).topics[0]?.partitions[0];
  if (found === undefined) throw new KafkaRefusal("ListOffsets", errorCodes.notLeader, null);
  requireSuccess("ListOffsets", found);
  return found.offset;
}
