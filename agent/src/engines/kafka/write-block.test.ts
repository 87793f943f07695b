import { expect, test } from "vitest";
import { blockedWrites } from "./access.ts";
import { fullMember, writeBlockChanges } from "./write-block.ts";

const members = [1, 2, 3];

test("a member whose disk is nearly full denies writes once", () => {
  const first = writeBlockChanges({ acls: [], number: 1, members, isFull: true });
  expect(first).toEqual({ add: [fullMember(1), ...blockedWrites], remove: [] });
  expect(writeBlockChanges({ acls: first.add, number: 1, members, isFull: true })).toEqual({ add: [], remove: [] });
});

test("writes remain denied while the disk of another member is nearly full", () => {
  const acls = [fullMember(1), fullMember(2), ...blockedWrites];
  expect(writeBlockChanges({ acls, number: 1, members, isFull: false })).toEqual({ add: [], remove: [fullMember(1)] });
  expect(writeBlockChanges({ acls, number: 3, members, isFull: false })).toEqual({ add: [], remove: [] });
  const denied = writeBlockChanges({ acls: [fullMember(2)], number: 3, members, isFull: false });
  expect(denied.add).toEqual(blockedWrites);
});

test("the last member with space permits writes again, also if a full one was removed", () => {
  const acls = [fullMember(1), ...blockedWrites];
  const expected = { add: [], remove: [fullMember(1), ...blockedWrites] };
  expect(writeBlockChanges({ acls, number: 1, members, isFull: false })).toEqual(expected);
  const removed = writeBlockChanges({ acls: [fullMember(4), ...blockedWrites], number: 1, members, isFull: false });
  expect(removed.remove).toEqual(blockedWrites);
});
