import { expect, test } from "vitest";
import { parseInfo } from "../session.ts";
import { receiptsOf } from "./receipts.ts";

const infoOf = (...lines: readonly string[]) => parseInfo(["role:master", ...lines].join("\r\n"));
const replica = (index: number, member: number, offset: number, state = "online") =>
  `slave${index}:ip=holdfast-member-${member},port=6379,state=${state},offset=${offset},lag=0,type=replica`;
const end = 1e9;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a replica that has all",                          [replica(0, 2, end)],                              [true]],
  ["a replica that lacks the last byte",              [replica(0, 2, end - 1)],                          [false]],
  ["each of two replicas",                            [replica(0, 2, end), replica(1, 3, end - 1)],      [true, false]],
  ["a replica once, by its newest session",           [replica(0, 2, end - 9), replica(1, 2, end)],      [true]],
  ["a replica right after its full copy",             [replica(0, 2, 0)],                                [false]],
  ["no replica during a full copy",                   [replica(0, 2, end, "send_bulk")],                 []],
  ["no replica that lacks too much for a switchover", [replica(0, 2, end - 2 ** 27)],                    []],
  ["no replica that is not a member",                 [replica(0, 2, end).replace("holdfast-", "")],     []],
] as const)("receipts are those of %s", (_, lines, receipts) => {
  expect(receiptsOf(infoOf(...lines), end)).toEqual(receipts);
});
