import type { Instance } from "../../engine-driver.ts";
import { earliest, offsetsAt } from "../offsets.ts";
import { fetch } from "../protocol/apis.ts";
import type { Connection } from "../protocol/connection.ts";
import { errorCodes, KafkaRefusal, requireSuccess } from "../protocol/protocol-error.ts";
import { type Batch, batchesOf } from "./batches.ts";
import { createLeaderSessions, type TopicPartition } from "./leader-sessions.ts";

const fetchBytes = 2 << 20;
/** FetchRequest: only records of committed transactions and of aborted ones, up to the last stable offset. */
const readCommitted = 1;

/** A partition of a topic, and the offset of its first record. */
export interface PartitionPosition extends TopicPartition {
  readonly start: number;
}

/** Range of offsets that was read; undefined if the topic was deleted during the read. */
export type ReadRange = { readonly start: number; readonly end: number } | undefined;

/** Reads partitions, each from the broker that leads it, over one connection to each broker. */
export function createPartitionReader(instance: Instance, signal: AbortSignal) {
  const leaders = createLeaderSessions(instance, signal);

  function fetchAt(of: TopicPartition, offset: number) {
    const response = leaders.at(of, (session) => fetchFrom(session, of, offset));
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
      let end: number | undefined;
      let next = fetchAt(of, position);
      for (;;) {
        const found = await next;
        if (found === undefined) return undefined;
        if (found === "deleted") {
          // Retention deleted records that were read before or would be next, so the copy begins behind them, too.
          const first = await leaders.at(of, (session) => startOf(session, of));
          if (first === undefined) return undefined;
          if (first <= position) throw new Error(`${of.topic} ${of.partition} has no offset ${position}`);
          start = position = first;
          if (end !== undefined && position >= end) return { start, end: position };
          next = fetchAt(of, position);
          continue;
        }
        end ??= found.lastStableOffset;
        const stable = end;
        const batches = [...batchesOf(found.records)].filter(
          ({ baseOffset, nextOffset }) => baseOffset < stable && nextOffset > position,
        );
        const last = batches.at(-1);
        // Compaction removes records, so none may remain before the end.
        if (last === undefined) return { start, end };
        position = last.nextOffset;
        const isEnd = position >= end;
        if (!isEnd) next = fetchAt(of, position);
        yield batches;
        if (isEnd) return { start, end };
      }
    },
    close: () => leaders.close(),
  };
}

async function fetchFrom(session: Connection, { topic, partition }: TopicPartition, fetchOffset: number) {
  const position = { index: partition, leaderEpoch: -1, fetchOffset, lastFetchedEpoch: -1, startOffset: -1 };
  const answer = await session.call(fetch, {
    replicaId: -1,
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: fetchBytes,
    isolationLevel: readCommitted,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ name: topic, partitions: [{ ...position, maxBytes: fetchBytes }] }],
    forgotten: [],
    rackId: "",
  });
  const found = answer.topics[0]?.partitions[0];
  if (found === undefined) throw new KafkaRefusal("Fetch", answer.errorCode, null);
  if (found.errorCode === errorCodes.offsetOutOfRange) return "deleted";
  requireSuccess("Fetch", found);
  return { lastStableOffset: found.lastStableOffset, records: found.records ?? Buffer.alloc(0) };
}

async function startOf(session: Connection, { topic, partition }: TopicPartition): Promise<number> {
  const found = await offsetsAt([session], [{ topic, partitions: [partition] }], earliest);
  const start = found.get(`${topic} ${partition}`);
  if (start === undefined) throw new KafkaRefusal("ListOffsets", errorCodes.notLeader, null);
  return start;
}
