import { expect, test } from "vitest";
import type { ClusterView, Shard } from "./cluster-view.ts";
import { type ClusterState, peersReportOf } from "./peers-report.ts";

const node = (number: number) => ({ number, id: `id-${number}` });
const shard = (complete: readonly number[], rest: Partial<Shard> = {}): Shard => {
  return {
    index: "orders",
    copies: 2,
    complete: complete.map((each) => `id-${each}`),
    moving: [],
    filling: [],
    ...rest,
  };
};

function reportOf({
  cluster = {},
  ...state
}: Omit<Partial<ClusterState>, "cluster"> & { cluster?: Partial<ClusterView> } = {}) {
  const nodes = [node(1), node(2), node(3)];
  const voters = ["id-1", "id-2", "id-3"];
  const all = { leader: 1, nodes, voters, excluded: [], members: [1, 2, 3], ...cluster };
  return peersReportOf({ number: 1, leaving: [], lacksData: false, shards: [], ...state, cluster: all });
}

test("each member may restart while all copies are complete", () => {
  const report = reportOf({ shards: [shard([1, 2]), shard([2, 3])] });
  expect(report).toMatchObject({ isLeader: true, inSync: true, members: [1, 2, 3], safeToRestart: [1, 2, 3] });
  expect(report.quorum).toEqual({ voters: 3, reachable: 3, hasMajority: true });
});

test("the only complete member of a shard may not restart while another one could have a copy", () => {
  expect(reportOf({ shards: [shard([1])] }).safeToRestart).toEqual([2, 3]);
  const filled = [shard([1], { filling: ["id-2"] })];
  expect(reportOf({ shards: filled }).safeToRestart).toEqual([3]);
  expect(reportOf({ shards: filled, number: 2 }).inSync).toBe(false);
  expect(reportOf({ shards: filled, number: 3 }).inSync).toBe(true);
});

test("a member restarts although no other one can have the copies that an index lacks", () => {
  expect(reportOf({ shards: [shard([1], { copies: 1 })] }).safeToRestart).toEqual([1, 2, 3]);
  expect(reportOf({ shards: [shard([1, 2, 3], { copies: 6 })] }).safeToRestart).toEqual([1, 2, 3]);
  expect(reportOf({ shards: [shard([1, 2], { copies: 6 })] }).safeToRestart).toEqual([3]);
});

test("a member whose copy moves to another one waits", () => {
  expect(reportOf({ shards: [shard([1, 2], { moving: ["id-1"] })] }).safeToRestart).toEqual([2, 3]);
});

test("nobody may restart while a member is down, and it remains a member", () => {
  const report = reportOf({ cluster: { nodes: [node(1), node(2)] }, shards: [shard([1, 2])] });
  expect(report).toMatchObject({ members: [1, 2, 3], joining: [], safeToRestart: [3] });
  expect(report.quorum).toEqual({ voters: 3, reachable: 2, hasMajority: true });
});

test("nobody may restart without a leader, or while an index lacks data", () => {
  expect(reportOf({ cluster: { leader: undefined } })).toMatchObject({
    isLeader: false,
    inSync: false,
    safeToRestart: [],
  });
  expect(reportOf({ lacksData: true })).toMatchObject({ inSync: false, safeToRestart: [] });
});

test("a new member joins until it is recorded, and a removed one does not join again", () => {
  const nodes = [node(1), node(2), node(3), node(4)];
  expect(reportOf({ cluster: { nodes } })).toMatchObject({ members: [1, 2, 3], joining: [4] });
  expect(reportOf({ cluster: { nodes, excluded: [4] } }).joining).toEqual([]);
  expect(reportOf({ cluster: { nodes }, leaving: [4] }).joining).toEqual([]);
});

test("members of a new cluster are those that are present", () => {
  expect(reportOf({ cluster: { members: undefined } }).members).toEqual([1, 2, 3]);
});

test("a single member may restart, and not once another one joined that has no vote", () => {
  const alone = { nodes: [node(1)], voters: ["id-1"], members: [1] };
  expect(reportOf({ cluster: alone, shards: [shard([1])] }).safeToRestart).toEqual([1]);
  const two = { nodes: [node(1), node(2)], voters: ["id-1"], members: [1, 2] };
  expect(reportOf({ cluster: two }).safeToRestart).toEqual([2]);
});
