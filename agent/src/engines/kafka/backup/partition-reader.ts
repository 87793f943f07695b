import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { membersOf } from "../../members.ts";
import { readPartitions } from "../cluster-view.ts";
import { earliest, offsetsAt } from "../offsets.ts";
import { fetch } from "../protocol/apis.ts";
import type { Connection } from "../protocol/connection.ts";
import { errorCodes, isTransient, KafkaRefusal, requireSuccess } from "../protocol/protocol-error.ts";
import { withMemberSession, withSession } from "../session.ts";
import { type Batch, batchesOf } from "./batches.ts";

const fetchBytes = 2 << 20;
/** FetchRequest: only records of committed transactions and of aborted ones, up to the last stable offset. */
const readCommitted = 1;
const retryMs = 100;
const leaderWithinMs = 60_000;

/** A partition of a topic, and the offset of its first record. */
export interface PartitionPosition {
  readonly topic: string;
  readonly partition: number;
  readonly start: number;
}

/** Range of offsets that was read; undefined if the topic was deleted during the read. */
export type ReadRange = { readonly start: number; readonly end: number } | undefined;

/** Reads partitions, each from the broker that leads it. */
export function createPartitionReader(instance: Instance, signal: AbortSignal) {
  let leaders: ReadonlyMap<string, number> | undefined;

  async function leaderOf({ topic, partition }: PartitionPosition): Promise<number | undefined> {
    leaders ??= await withSession(instance, signal, async (session) => {
      const { partitions } = await readPartitions(session);
      return new Map(partitions.map((each) => [`${each.topic} ${each.index}`, each.leader]));
    });
    return leaders.get(`${topic} ${partition}`);
  }

  /** Calls the leader, and again after an election. Undefined if the topic does not exist any more. */
  async function atLeader<T>(of: PartitionPosition, work: (session: Connection) => Promise<T>): Promise<T | undefined> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(leaderWithinMs)]);
    let cause: unknown;
    while (!limit.aborted) {
      const leader = await leaderOf(of);
      if (leader === undefined) return undefined;
      const address = addressOf(instance, leader);
      try {
        if (address !== undefined) return await withMemberSession(instance, address, signal, work);
      } catch (error) {
        // A leader that ended breaks the connection.
        if (error instanceof KafkaRefusal && !isTransient(error)) throw error;
        cause = error;
      }
      leaders = undefined;
      await sleep(retryMs, undefined, { signal });
    }
    signal.throwIfAborted();
    throw new Error(`the partition ${of.partition} of ${of.topic} cannot be read`, { cause });
  }

  return {
    /**
     * Yields the partition's batches up to its last stable offset at the first read. Of an open transaction the end
     * would never come, and consumers of the copy would wait for it.
     */
    async *read(of: PartitionPosition): AsyncGenerator<readonly Batch[], ReadRange> {
      let { start } = of;
      let position = start;
      let end: number | undefined;
      for (;;) {
        const found = await atLeader(of, (session) => fetchFrom(session, of, position));
        if (found === undefined) return undefined;
        if (found === "deleted") {
          // Retention deleted records that were read before or would be next, so the copy begins behind them, too.
          const first = await atLeader(of, (session) => startOf(session, of));
          if (first === undefined) return undefined;
          if (first <= position) throw new Error(`${of.topic} ${of.partition} has no offset ${position}`);
          start = position = first;
          if (end !== undefined && position >= end) return { start, end: position };
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
        yield batches;
        position = last.nextOffset;
        if (position >= end) return { start, end };
      }
    },
  };
}

function addressOf({ spec }: Instance, number: number): string | undefined {
  if (membersOf(spec).length === 0) return spec.address;
  return membersOf(spec).find((member) => member.number === number)?.address;
}

async function fetchFrom(session: Connection, { topic, partition }: PartitionPosition, fetchOffset: number) {
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

async function startOf(session: Connection, { topic, partition }: PartitionPosition): Promise<number> {
  const found = await offsetsAt([session], [{ topic, partitions: [partition] }], earliest);
  const start = found.get(`${topic} ${partition}`);
  if (start === undefined) throw new KafkaRefusal("ListOffsets", errorCodes.notLeader, null);
  return start;
}
