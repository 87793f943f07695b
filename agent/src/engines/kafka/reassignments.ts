import type { Partition } from "./cluster-view.ts";
import { alterReassignments, listReassignments } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";

const timeoutMs = 2_000;
/** Partitions that move at the same time. */
const concurrentMoves = 20;

/** A partition with the brokers that it should have. */
export interface Move {
  readonly topic: string;
  readonly index: number;
  readonly replicas: readonly number[];
}

export interface Placement {
  readonly partitions: readonly Partition[];
  /** Brokers that may get replicas. */
  readonly brokers: readonly number[];
}

/**
 * Moves by which no partition has a replica on the broker `number` any more. A partition without a leader stays: no
 * other broker has its data.
 */
export function drainMoves({ partitions, brokers }: Placement, number: number): Move[] {
  const others = brokers.filter((each) => each !== number);
  const choose = createChoice(partitions, others);
  return partitions
    .filter(({ leader, replicas }) => leader >= 0 && replicas.includes(number))
    .map(({ topic, index, replicas }) => {
      const staying = replicas.filter((each) => each !== number);
      return { topic, index, replicas: choose(staying, Math.min(replicas.length, others.length)) };
    })
    .filter(({ replicas }) => replicas.length > 0);
}

/** Share of the average number of replicas that each broker has at least. */
const fairShare = 0.8;

/** Moves by which each partition of these topics has `factor` replicas, or one on each broker. */
export function raiseMoves({ partitions, brokers }: Placement, factor: number, isRaised: (topic: string) => boolean) {
  const desired = Math.min(factor, brokers.length);
  const choose = createChoice(partitions, brokers);
  return partitions
    .filter(({ topic, replicas }) => isRaised(topic) && replicas.length < desired)
    .map(({ topic, index, replicas }): Move => ({ topic, index, replicas: choose(replicas, desired) }));
}

/**
 * Moves by which a broker that has few replicas, such as a new one, gets its share of them. Others keep theirs, so that
 * no more data move than necessary. A replica takes the position of the one that it replaces, and so its leadership.
 */
export function spreadMoves({ partitions, brokers }: Placement): Move[] {
  const load = new Map(brokers.map((number) => [number, 0]));
  const topics = new Map<string, number>();
  const count = ({ topic }: Partition, number: number, change: number) => {
    load.set(number, (load.get(number) ?? 0) + change);
    topics.set(`${number} ${topic}`, (topics.get(`${number} ${topic}`) ?? 0) + change);
  };
  for (const each of partitions) for (const number of each.replicas) count(each, number, 1);
  const loadOf = (number: number) => load.get(number) ?? 0;
  const total = brokers.reduce((sum, number) => sum + loadOf(number), 0);
  const least = Math.floor((fairShare * total) / brokers.length);
  const moves = new Map<Partition, Move>();
  for (const number of brokers) {
    while (loadOf(number) < least && moves.size < concurrentMoves) {
      const [from = number] = brokers.toSorted((a, b) => loadOf(b) - loadOf(a) || a - b);
      const ofTopic = ({ topic }: Partition) => topics.get(`${number} ${topic}`) ?? 0;
      const [found] = partitions
        .filter((each) => each.replicas.includes(from) && !each.replicas.includes(number) && !moves.has(each))
        // A new broker gets partitions of each topic.
        .toSorted((a, b) => ofTopic(a) - ofTopic(b));
      if (found === undefined) break;
      const { topic, index, replicas } = found;
      moves.set(found, { topic, index, replicas: replicas.map((each) => (each === from ? number : each)) });
      count(found, from, -1);
      count(found, number, 1);
    }
  }
  return [...moves.values()];
}

/** Chooses the brokers with the fewest replicas. Brokers that a partition has already come first. */
function createChoice(partitions: readonly Partition[], brokers: readonly number[]) {
  const load = new Map(brokers.map((number) => [number, 0]));
  const count = (number: number) => load.set(number, (load.get(number) ?? 0) + 1);
  for (const { replicas } of partitions) for (const number of replicas) count(number);
  return (present: readonly number[], factor: number): number[] => {
    const chosen = [...present];
    while (chosen.length < factor) {
      const free = brokers.filter((number) => !chosen.includes(number));
      const [next] = free.toSorted((a, b) => (load.get(a) ?? 0) - (load.get(b) ?? 0) || a - b);
      if (next === undefined) break;
      count(next);
      chosen.push(next);
    }
    return chosen;
  };
}

/** Starts some of the moves, unless earlier ones have not ended. */
export async function startMoves(session: Connection, moves: readonly Move[]): Promise<void> {
  if (moves.length === 0) return;
  const current = await session.call(listReassignments, { timeoutMs, topics: null });
  requireSuccess("ListPartitionReassignments", current);
  if (current.topics.length > 0) return;
  const byTopic = Map.groupBy(moves.slice(0, concurrentMoves), ({ topic }) => topic);
  const topics = [...byTopic].map(([name, partitions]) => ({ name, partitions }));
  const answer = await session.call(alterReassignments, { timeoutMs, topics });
  requireSuccess("AlterPartitionReassignments", answer);
  for (const { partitions } of answer.topics)
    for (const result of partitions) requireSuccess("AlterPartitionReassignments", result);
}
