import { expect, test } from "vitest";
import { parseInfo } from "../session.ts";
import { haveReceivedMore } from "./replication.ts";

const infoOf = (...lines: readonly string[]) => parseInfo(["role:master", ...lines].join("\r\n"));
const replica = (index: number, member: number, offset: number, state = "online") =>
  `slave${index}:ip=holdfast-member-${member},port=6379,state=${state},offset=${offset},lag=0,type=replica`;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["after it received more than was written before",        [replica(0, 2, 101)],                                   [2],    true],
  ["not by what it had received already",                   [replica(0, 2, 100)],                                   [2],    false],
  ["not during a full copy",                                [replica(0, 2, 101, "send_bulk")],                      [2],    false],
  ["not by another member",                                 [replica(0, 3, 101)],                                   [2],    false],
  ["not by a replica that is not a member",                 [replica(0, 2, 101).replace("holdfast-member-", "")],   [2],    false],
  ["only together with the others",                         [replica(0, 2, 101), replica(1, 3, 100)],               [2, 3], false],
  ["by its new session beside a stale one",                 [replica(0, 2, 90), replica(1, 2, 101)],                [2],    true],
  ["if no member is queried",                               [],                                                     [],     true],
] as const)("a member confirms %s", (_, lines, numbers, confirmed) => {
  expect(haveReceivedMore(infoOf(...lines), numbers, 100)).toBe(confirmed);
});
