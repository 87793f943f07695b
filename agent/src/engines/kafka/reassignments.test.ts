import { expect, test } from "vitest";
import { drainMoves } from "./reassignments.ts";

const partition = (index: number, replicas: readonly number[], leader = replicas[0] ?? -1) => {
  return { topic: "orders", index, leader, replicas, inSync: replicas };
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
