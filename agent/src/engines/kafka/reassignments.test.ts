import { expect, test } from "vitest";
import { drainMoves, raiseMoves, spreadMoves } from "./reassignments.ts";

const partition = (index: number, replicas: readonly number[], leader = replicas[0] ?? -1) => {
  return { topic: "orders", topicId: "", index, leader, replicas, inSync: replicas };
};
const replicasOf = (moves: readonly { readonly replicas: readonly number[] }[]) =>
  moves.map(({ replicas }) => replicas.join());

test("partitions move from a drained broker to those with the fewest replicas", () => {
  const partitions = [partition(0, [1, 2]), partition(1, [1, 3]), partition(2, [2, 3]), partition(3, [1])];
  expect(replicasOf(drainMoves({ partitions, brokers: [1, 2, 3, 4] }, 1))).toEqual(["2,4", "3,4", "2"]);
});

test("a drained broker's partitions have fewer replicas if no other broker remains for them", () => {
  const partitions = [partition(0, [1, 2, 3])];
  expect(replicasOf(drainMoves({ partitions, brokers: [1, 2, 3] }, 1))).toEqual(["2,3"]);
  expect(drainMoves({ partitions: [partition(0, [1])], brokers: [1] }, 1)).toEqual([]);
});

test("a partition without a leader stays: no other broker has its data", () => {
  const partitions = [partition(0, [1], -1)];
  expect(drainMoves({ partitions, brokers: [2, 3] }, 1)).toEqual([]);
});

test("partitions get as many replicas as desired, or one on each broker, and retain those that they have", () => {
  const partitions = [partition(0, [1]), partition(1, [2, 1, 3])];
  const raised = (brokers: readonly number[]) => raiseMoves({ partitions, brokers }, 3, () => true);
  expect(replicasOf(raised([1, 2, 3, 4]))).toEqual(["1,4,2"]);
  expect(replicasOf(raised([1, 2]))).toEqual(["1,2"]);
  expect(raiseMoves({ partitions, brokers: [1, 2, 3] }, 3, () => false)).toEqual([]);
});

test("a new broker gets its share of the partitions, from those that have most", () => {
  const partitions = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => partition(index, [1, 2, 3]));
  const moves = spreadMoves({ partitions, brokers: [1, 2, 3, 4] });
  expect(replicasOf(moves)).toEqual(["4,2,3", "1,4,3", "1,2,4", "4,2,3"]);
  const after = partitions.map((each) => ({ ...each, ...moves.find(({ index }) => index === each.index) }));
  expect(spreadMoves({ partitions: after, brokers: [1, 2, 3, 4] })).toEqual([]);
});

test("brokers with unequal numbers of few partitions keep them", () => {
  const partitions = [partition(0, [1]), partition(1, [1]), partition(2, [2])];
  expect(spreadMoves({ partitions, brokers: [1, 2, 3, 4] })).toEqual([]);
  expect(spreadMoves({ partitions: [], brokers: [1] })).toEqual([]);
});

test("no call plans more moves than run at the same time", () => {
  const partitions = Array.from({ length: 2_000 }, (_, index) => partition(index, [1, 2, 3]));
  expect(spreadMoves({ partitions, brokers: [1, 2, 3, 4] })).toHaveLength(20);
});
