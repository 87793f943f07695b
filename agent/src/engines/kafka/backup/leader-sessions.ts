import { setTimeout as sleep } from "node:timers/promises";
import { SourceUnreadable } from "../../backup-facet.ts";
import type { Instance } from "../../engine-driver.ts";
import { type Partition, readPartitions } from "../cluster-view.ts";
import type { Connection, OpenConnection } from "../protocol/connection.ts";
import { isTransient, KafkaRefusal } from "../protocol/protocol-error.ts";
import { ResponseTooLarge } from "../protocol/responses.ts";
import { addressOfBroker, openMemberSession, withSession } from "../session.ts";

const retryMs = 100;
const leaderWithinMs = 60_000;
/** A broker that hangs keeps its connections, while its partitions get other leaders. */
const respondsWithinMs = 20_000;

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

/** Sessions at the brokers that lead partitions, one at each broker for all its partitions. */
export interface LeaderSessions {
  /**
   * Calls the leader, and again after an election. Undefined if the topic does not exist any more, also if there is
   * another one of its name since.
   */
  at<T>(of: TopicPartition, work: (session: Connection, topicId: string) => Promise<T>): Promise<T | undefined>;
  /** Ends all sessions, and calls that have not ended. */
  close(): void;
}

function tooLarge({ topic, partition }: TopicPartition, bytes: number): string {
  const mib = Math.ceil(bytes / 2 ** 20);
  return `The partition ${partition} of the topic ${topic} has a batch of messages of about ${mib} MiB, and a backup reads 64 MiB at most. Delete the topic, or its records up to this batch.`;
}

export function createLeaderSessions(instance: Instance, caller: AbortSignal): LeaderSessions {
  const closed = new AbortController();
  const signal = AbortSignal.any([caller, closed.signal]);
  const sessions = new Map<string, OpenConnection>();
  const topicIds = new Map<string, string>();
  let current: ReadonlyMap<string, Partition> | undefined;

  async function partitionOf({ topic, partition }: TopicPartition, limit: AbortSignal): Promise<Partition | undefined> {
    current ??= await withSession(instance, limit, async (session) => {
      const { partitions } = await readPartitions(session);
      return new Map(partitions.map((each) => [`${each.topic} ${each.index}`, each]));
    });
    const found = current.get(`${topic} ${partition}`);
    if (found === undefined) return undefined;
    const first = topicIds.get(topic) ?? found.topicId;
    topicIds.set(topic, first);
    return found.topicId === first ? found : undefined;
  }

  async function sessionAt(address: string): Promise<OpenConnection> {
    const open = sessions.get(address) ?? (await openMemberSession(instance, address, signal));
    sessions.set(address, open);
    return open;
  }

  async function respondedBy<T>(address: string, work: (session: Connection) => Promise<T>): Promise<T> {
    const timer = setTimeout(() => disconnect(address), respondsWithinMs);
    try {
      return await work(await sessionAt(address));
    } finally {
      clearTimeout(timer);
    }
  }

  function disconnect(address: string): void {
    sessions.get(address)?.close();
    sessions.delete(address);
  }

  return {
    async at(of, work) {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(leaderWithinMs)]);
      let cause: unknown;
      while (!limit.aborted) {
        let address: string | undefined;
        try {
          const found = await partitionOf(of, limit);
          if (found === undefined) return undefined;
          address = addressOfBroker(instance, found.leader);
          if (address !== undefined) return await respondedBy(address, (session) => work(session, found.topicId));
        } catch (error) {
          // A broker that ended breaks the connection.
          if (error instanceof KafkaRefusal && !isTransient(error)) throw error;
          if (error instanceof ResponseTooLarge)
            throw new SourceUnreadable(tooLarge(of, error.bytes), { cause: error });
          cause = error;
          if (address !== undefined) disconnect(address);
        }
        current = undefined;
        await sleep(retryMs, undefined, { signal });
      }
      signal.throwIfAborted();
      throw new Error(`the partition ${of.partition} of ${of.topic} cannot be read`, { cause });
    },
    close() {
      closed.abort(new Error("the reader of partitions was closed"));
      for (const address of sessions.keys()) disconnect(address);
    },
  };
}
