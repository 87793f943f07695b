import { expect, test } from "vitest";
import type { Partition } from "./cluster-view.ts";
import { type ClusterState, peersReportOf } from "./peers-report.ts";

const member = (number: number, isReachable = true, directoryId = `d-${number}`) => ({
  number,
  directoryId,
  isReachable,
});
const partition = (replicas: readonly number[], inSync = replicas): Partition => {
  return { topic: "orders", topicId: "", index: 0, leader: inSync[0] ?? -1, replicas, inSync };
};
const three = [member(1), member(2), member(3)];

function reportOf({
  voters = three,
  observers = [],
  ...state
}: Partial<ClusterState> & {
  readonly voters?: readonly ReturnType<typeof member>[];
  readonly observers?: readonly ReturnType<typeof member>[];
} = {}) {
  const quorum = { leader: 1, voters, observers };
  return peersReportOf({ number: 1, leaving: [], quorum, brokers: [1, 2, 3], partitions: [], ...state });
}

test("each member may restart while all replicas are in sync", () => {
  const report = reportOf({ partitions: [partition([1, 2, 3]), partition([2, 3])] });
  expect(report).toMatchObject({ isLeader: true, inSync: true, members: [1, 2, 3], safeToRestart: [1, 2, 3] });
  expect(report.quorum).toEqual({ voters: 3, reachable: 3, hasMajority: true });
});

test("only the member that lacks records may restart", () => {
  const partitions = [partition([1, 2, 3], [1, 2])];
  expect(reportOf({ partitions }).safeToRestart).toEqual([3]);
  expect(reportOf({ partitions, number: 3 }).inSync).toBe(false);
});

test("a member may restart although its partition has no other replica", () => {
  expect(reportOf({ partitions: [partition([1])] }).safeToRestart).toEqual([1, 2, 3]);
});

test("no member may restart if the others would have no majority", () => {
  expect(reportOf({ voters: [member(1), member(2), member(3, false)] }).safeToRestart).toEqual([3]);
  const alone = reportOf({ voters: [member(1), member(2, false), member(3, false)] });
  expect(alone).toMatchObject({ inSync: false, safeToRestart: [], quorum: { hasMajority: false } });
});

test("the only member of a cluster may restart", () => {
  expect(reportOf({ voters: [member(1)], brokers: [1] }).safeToRestart).toEqual([1]);
});

test("a member that reads without a vote joins, also one that had a vote before its disk was lost", () => {
  expect(reportOf({ observers: [member(4)] })).toMatchObject({ members: [1, 2, 3], joining: [4] });
  const lost = reportOf({ observers: [member(3, true, "another")] });
  expect(lost).toMatchObject({ members: [1, 2], joining: [3] });
});

test("a member that is removed does not join again", () => {
  const voters = [member(2), member(3), member(4)];
  expect(reportOf({ voters, observers: [member(1)], leaving: [1] })).toMatchObject({ members: [2, 3, 4], joining: [] });
});

test("without a leader a member reports no majority", () => {
  const state = { number: 1, leaving: [], quorum: undefined, brokers: [], partitions: [] };
  expect(peersReportOf(state)).toMatchObject({ inSync: false, members: [], quorum: { hasMajority: false } });
});
