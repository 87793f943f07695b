import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { membersOf } from "../../members.ts";
import { readPartitions } from "../cluster-view.ts";
import type { Connection, OpenConnection } from "../protocol/connection.ts";
import { isTransient, KafkaRefusal } from "../protocol/protocol-error.ts";
import { openMemberSession, withSession } from "../session.ts";

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
  /** Calls the leader, and again after an election. Undefined if the topic does not exist any more. */
  at<T>(of: TopicPartition, work: (session: Connection) => Promise<T>): Promise<T | undefined>;
  /** Ends all sessions, and calls that have not ended. */
  close(): void;
}

export function createLeaderSessions(instance: Instance, caller: AbortSignal): LeaderSessions {
  const closed = new AbortController();
  const signal = AbortSignal.any([caller, closed.signal]);
  const sessions = new Map<string, OpenConnection>();
  let leaders: ReadonlyMap<string, number> | undefined;

  async function leaderOf({ topic, partition }: TopicPartition): Promise<number | undefined> {
    leaders ??= await withSession(instance, signal, async (session) => {
      const { partitions } = await readPartitions(session);
      return new Map(partitions.map((each) => [`${each.topic} ${each.index}`, each.leader]));
    });
    return leaders.get(`${topic} ${partition}`);
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
          const leader = await leaderOf(of);
          if (leader === undefined) return undefined;
          address = addressOf(instance, leader);
          if (address !== undefined) return await respondedBy(address, work);
        } catch (error) {
          // A broker that ended breaks the connection.
          if (error instanceof KafkaRefusal && !isTransient(error)) throw error;
          cause = error;
          if (address !== undefined) disconnect(address);
        }
        leaders = undefined;
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

function addressOf({ spec }: Instance, number: number): string | undefined {
  if (membersOf(spec).length === 0) return spec.address;
  return membersOf(spec).find((member) => member.number === number)?.address;
}
