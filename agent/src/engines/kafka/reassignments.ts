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
