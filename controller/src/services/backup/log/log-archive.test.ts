import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ArchiveObservationSchema, ArchiveRunSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { type ArchiveObject, type LogRange, newArchive } from "../archive/archive.ts";
import { hasGap, isWorthRecording, isFollowed, rangesSince, rangesToDelete, rangesWith } from "./log-archive.ts";

const hourMs = 3_600_000;
const log = { archiveId: "a-1", keyId: "k-1", keyVersion: 1, wrappedKey: "w", since: 0 };
const base = newArchive(runningService(), 0, 0);
const archive = (ranges: readonly LogRange[], current = log): ArchiveObject => ({
  ...base,
  spec: { ...base.spec, log: current },
  status: { ...base.status, log: ranges },
});
const report = (at: number, lastSequence: number, over: { archiveId?: string; term?: bigint; state?: string } = {}) =>
  create(ArchiveObservationSchema, {
    archiveId: "a-1",
    state: "following",
    term: 1n,
    firstSequence: 1n,
    lastSequence: BigInt(lastSequence),
    fromTime: timestampFromMs(1_000),
    durableTime: timestampFromMs(at),
    ...over,
  });

test("a machine's report extends its range, and an older report changes nothing", () => {
  const first = rangesWith(archive([]), report(5_000, 3));
  expect(first).toMatchObject([
    { archiveId: "a-1", term: 1, firstSequence: 1, lastSequence: 3, fromTime: 1_000, toTime: 5_000 },
  ]);
  const longer = rangesWith(archive(first), report(9_000, 4));
  expect(longer).toMatchObject([{ firstSequence: 1, lastSequence: 4, fromTime: 1_000, toTime: 9_000 }]);
  expect(rangesWith(archive(longer), report(8_000, 4))).toBe(longer);
  expect(rangesWith(archive(longer), undefined)).toBe(longer);
  expect(rangesWith(archive(longer), report(99_000, 9, { archiveId: "a-0" }))).toBe(longer);
});

test("a clock that was set back causes repeated moments", () => {
  const first = rangesWith(archive([]), report(500_000, 3));
  const back = rangesWith(archive(first), report(200_000, 4));
  expect(back).toMatchObject([{ lastSequence: 4, toTime: 500_000, repeated: [{ from: 200_000, to: 500_000 }] }]);
  const later = rangesWith(archive(back), report(300_000, 5));
  expect(later).toMatchObject([{ lastSequence: 5, toTime: 500_000, repeated: [{ from: 200_000, to: 500_000 }] }]);
  const passed = rangesWith(archive(later), report(600_000, 6));
  expect(passed).toMatchObject([{ lastSequence: 6, toTime: 600_000, repeated: [{ from: 200_000, to: 500_000 }] }]);
  // The clock may be read shortly after the commit.
  expect(rangesWith(archive(first), report(499_500, 4))[0]).not.toHaveProperty("repeated");
});

test("a term ends with its primary's newest commit, also if the next primary's clock is behind", () => {
  const first = rangesWith(archive([]), report(300_000, 3));
  const run = create(ArchiveRunSchema, {
    term: 1n,
    firstSequence: 1n,
    lastSequence: 5n,
    toTime: timestampFromMs(500_000),
  });
  const next = { ...report(210_000, 1, { term: 2n }), fromTime: timestampFromMs(200_000), earlier: [run] };
  expect(rangesWith(archive(first), create(ArchiveObservationSchema, next))).toMatchObject([
    { term: 1, toTime: 500_000 },
    { term: 2, fromTime: 200_000, toTime: 210_000 },
  ]);
});

test("each archive and term has its own range, with all keys of its objects", () => {
  const first = rangesWith(archive([]), report(5_000, 3));
  const renewed = rangesWith(archive(first, { ...log, keyId: "k-2" }), report(6_000, 4));
  expect(renewed.map(({ keys }) => keys.map(({ keyId }) => keyId))).toEqual([["k-1", "k-2"]]);
  // The key was rotated before anything was recorded, and the machine gets it later.
  const early = { ...log, keyId: "k-2", earlierKeys: [{ keyId: "k-1", keyVersion: 1, wrappedKey: "w" }] };
  expect(rangesWith(archive([], early), report(5_000, 3))[0]?.keys.map(({ keyId }) => keyId)).toEqual(["k-1", "k-2"]);
  const second = {
    ...report(9_000, 1, { term: 2n }),
    earlier: [create(ArchiveRunSchema, { term: 1n, lastSequence: 3n })],
  };
  const both = rangesWith(archive(first, { ...log, keyId: "k-2" }), create(ArchiveObservationSchema, second));
  expect(both.at(-1)?.keys.map(({ keyId }) => keyId)).toEqual(["k-1", "k-2"]);
  const next = rangesWith(archive(renewed, { ...log, archiveId: "a-2" }), report(7_000, 5, { archiveId: "a-2" }));
  expect(next.map(({ archiveId }) => archiveId)).toEqual(["a-1", "a-2"]);
  const term = rangesWith(
    archive(next, { ...log, archiveId: "a-2" }),
    report(8_000, 1, { archiveId: "a-2", term: 2n }),
  );
  expect(term.map((range) => range.term)).toEqual([1, 1, 2]);
});

test("a term continues where its machine reports the previous one's end, not where it was recorded", () => {
  const first = rangesWith(archive([]), report(5_000, 3));
  const run = create(ArchiveRunSchema, { term: 1n, firstSequence: 1n, lastSequence: 5n });
  const next = create(ArchiveObservationSchema, { ...report(9_000, 1, { term: 2n }), earlier: [run] });
  const both = rangesWith(archive(first), next);
  expect(both).toMatchObject([
    { term: 1, firstSequence: 1, lastSequence: 5 },
    { term: 2, firstSequence: 1, lastSequence: 1, continues: true },
  ]);
  expect(rangesWith(archive(both), next)).toBe(both);
  // A term that ended before it was recorded is no gap.
  const unnoted = create(ArchiveRunSchema, { term: 2n, firstSequence: 1n, lastSequence: 4n });
  const third = create(ArchiveObservationSchema, { ...report(9_000, 1, { term: 3n }), earlier: [run, unnoted] });
  expect(rangesWith(archive(first), third)).toMatchObject([
    { term: 1, lastSequence: 5 },
    { term: 2, firstSequence: 1, lastSequence: 4, continues: true },
    { term: 3, continues: true },
  ]);
  // The earlier term is dropped once no base needs it, though its archive continues.
  expect(rangesSince(both, log, hourMs).map(({ term }) => term)).toEqual([2]);
  expect(rangesSince(both, log, 4_000).map(({ term }) => term)).toEqual([1, 2]);
  // A base began after its term's last record, and before the next term.
  const late = create(ArchiveObservationSchema, { ...next, fromTime: timestampFromMs(hourMs) });
  expect(rangesSince(rangesWith(archive(first), late), log, hourMs - 1).map(({ term }) => term)).toEqual([1, 2]);
});

test("a term without a successor is abandoned, and objects behind a term's end belong to no range", () => {
  const runs = (...ends: readonly bigint[]) =>
    ends.map((lastSequence, at) => create(ArchiveRunSchema, { term: BigInt(at + 1), firstSequence: 1n, lastSequence }));
  const first = rangesWith(archive([]), report(5_000, 9));
  const second = create(ArchiveObservationSchema, { ...report(7_000, 2, { term: 2n }), earlier: runs(7n) });
  const both = rangesWith(archive(first), second);
  expect(both).toMatchObject([{ term: 1, lastSequence: 7 }, { term: 2 }]);
  // The third primary had none of the second one's log.
  const third = create(ArchiveObservationSchema, { ...report(9_000, 1, { term: 3n }), earlier: runs(8n) });
  const ranges = rangesWith(archive(both), third);
  expect(ranges).toMatchObject([
    { term: 1, lastSequence: 8 },
    { term: 2, isAbandoned: true },
    { term: 3, continues: true },
  ]);
  expect(ranges[0]?.isAbandoned).toBeUndefined();
});

test("small progress is not stored each time", () => {
  const first = rangesWith(archive([]), report(5_000, 3));
  expect(isWorthRecording([], first)).toBe(true);
  expect(isWorthRecording(first, first)).toBe(false);
  expect(isWorthRecording(first, rangesWith(archive(first), report(9_000, 4)))).toBe(false);
  expect(isWorthRecording(first, rangesWith(archive(first), report(40_000, 4)))).toBe(true);
});

test("log is dropped once no retained base needs it, and not before", () => {
  let ranges: readonly LogRange[] = [];
  for (let hour = 1; hour <= 48; hour += 1) ranges = rangesWith(archive(ranges), report(hour * hourMs, hour * 10));
  const retained = rangesSince(ranges, log, 30 * hourMs);
  const [range] = retained;
  expect(range?.fromTime).toBeLessThan(30 * hourMs);
  expect(range?.fromTime).toBeGreaterThanOrEqual(20 * hourMs);
  expect(range?.firstSequence).toBe(((range?.fromTime ?? 0) / hourMs) * 10);
  expect(rangesSince(retained, log, 30 * hourMs)).toBe(retained);
  expect(rangesSince(ranges, log, undefined)).toBe(ranges);
  const other = { ...log, archiveId: "a-2" };
  expect(rangesSince(ranges, other, 49 * hourMs)).toEqual([]);
  // Clocks may differ a little.
  expect(rangesSince(ranges, other, 48 * hourMs + 60_000)).toHaveLength(1);
  expect(rangesSince(ranges, other, 48 * hourMs)).toHaveLength(1);
});

test("an archive is followed while it has no gap", () => {
  expect(isFollowed(log, report(1, 1))).toBe(true);
  expect(isFollowed(log, report(1, 1, { state: "waiting" }))).toBe(true);
  for (const no of [undefined, report(1, 1, { state: "gap" }), report(1, 1, { archiveId: "a-0" })])
    expect(isFollowed(log, no)).toBe(false);
  expect(hasGap(log, report(1, 1, { state: "gap" }))).toBe(true);
  expect(isFollowed(null, report(1, 1))).toBe(false);
});

test("log that only the replaced primary stored is its term's tail, once", () => {
  const first = rangesWith(archive([]), report(9_000, 9));
  const run = create(ArchiveRunSchema, {
    term: 1n,
    firstSequence: 1n,
    lastSequence: 6n,
    toTime: timestampFromMs(6_000),
  });
  const next = create(ArchiveObservationSchema, {
    ...report(12_000, 2, { term: 2n }),
    fromTime: timestampFromMs(11_000),
    earlier: [run],
  });
  const tail = { lastSequence: 9, fromTime: 6_000, toTime: 9_000 };
  const second = rangesWith(archive(first), next);
  expect(second).toMatchObject([{ term: 1, lastSequence: 6, tail }, { term: 2 }]);
  const third = { ...next, term: 3n, earlier: [run, create(ArchiveRunSchema, { term: 2n, lastSequence: 2n })] };
  expect(rangesWith(archive(second), create(ArchiveObservationSchema, third))).toMatchObject([
    { term: 1, lastSequence: 6, tail },
    { term: 2 },
    { term: 3 },
  ]);
  expect(rangesToDelete(second, [])).toMatchObject([{ end: 10 }, { end: 3 }]);
  // Nothing is behind the end that the next primary continues from.
  const complete = create(ArchiveObservationSchema, {
    ...next,
    earlier: [create(ArchiveRunSchema, { ...run, lastSequence: 9n })],
  });
  expect(rangesWith(archive(first), complete)[0]).not.toHaveProperty("tail");
});
