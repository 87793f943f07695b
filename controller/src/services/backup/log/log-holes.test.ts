import { describe, expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { type ArchiveObject, type LogHole, type LogRange, newArchive } from "../archive/archive.ts";
import { dueBackup } from "../archive/archive-plan.ts";
import { type BackupObject, newBackupObject } from "../backup.ts";
import { withHole, withoutHoles } from "./log-holes.ts";
import { logAfter, restorableOf } from "../restore/restorable.ts";
import { choosePoint } from "../restore/restore-point.ts";

const now = 1_000_000;
const service = runningService({ createdAt: now });

const range = (over: Partial<LogRange> = {}): LogRange => ({
  archiveId: "a-1",
  term: 1,
  firstSequence: 1,
  lastSequence: 9,
  fromTime: 1_000,
  toTime: 9_000,
  keys: [],
  checkpoints: [],
  ...over,
});
const hole = (firstSequence: number, lastSequence: number, from: number, to: number): LogHole => ({
  firstSequence,
  lastSequence,
  from,
  to,
});

function base(id: string, at: number, over: Partial<BackupObject["status"]> = {}, baseId?: string): BackupObject {
  const made = newBackupObject(id, "org", { ...requestedBackup, ...(baseId !== undefined && { baseId }) }, at);
  const status = {
    ...made.status,
    state: "completed",
    startedAt: at,
    finishedAt: at + 10,
    restoresTo: at + 10,
  } as const;
  return { ...made, status: { ...status, ...over } };
}

function archive(...log: readonly LogRange[]): ArchiveObject {
  const made = newArchive(service, 0, 0);
  const archiving = { archiveId: "a-1", keyId: "k-1", keyVersion: 1, wrappedKey: "", since: 0 };
  return { ...made, spec: { ...made.spec, log: archiving }, status: { ...made.status, log, lastAutomatedAt: now - 1 } };
}

const parts = (of: LogRange) =>
  withoutHoles([of]).map(({ firstSequence, lastSequence, fromTime, toTime }) => [
    firstSequence,
    lastSequence,
    fromTime,
    toTime,
  ]);

describe("a range with holes", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  test.each<[string, LogHole[], number[][]]>([
    ["none",                     [],                                                   [[1, 9, 1_000, 9_000]]],
    ["one in the middle",        [hole(4, 5, 4_000, 6_000)],                           [[1, 3, 1_000, 4_000], [6, 9, 6_000, 9_000]]],
    ["one at the beginning",     [hole(1, 1, 1_000, 2_000)],                           [[2, 9, 2_000, 9_000]]],
    ["one at the end",           [hole(9, 9, 8_000, 9_500)],                           [[1, 8, 1_000, 8_000], [10, 9, 9_500, 9_000]]],
    ["two",                      [hole(2, 2, 2_000, 3_000), hole(7, 8, 6_000, 8_000)], [[1, 1, 1_000, 2_000], [3, 6, 3_000, 6_000], [9, 9, 8_000, 9_000]]],
    ["one that is deleted",      [hole(0, 0, 0, 500)],                                 [[1, 9, 1_000, 9_000]]],
    ["one beyond the term",      [hole(12, 12, 9_900, 9_950)],                         [[1, 9, 1_000, 9_000]]],
  ])("%s", (_what, holes, expected) => {
    expect(parts(range({ holes }))).toEqual(expected);
  });

  test("holes that touch are one, and beyond a hundred the oldest are joined", () => {
    const one = withHole([hole(2, 3, 20, 40)], hole(4, 4, 30, 50));
    expect(one).toEqual([hole(2, 4, 20, 50)]);
    expect(withHole(one, hole(3, 3, 25, 45))).toEqual(one);
    let all: readonly LogHole[] = [];
    for (let at = 1; at <= 150; at += 1) all = withHole(all, hole(10 * at, 10 * at, at, at + 1));
    expect(all).toHaveLength(100);
    expect(all[0]).toEqual(hole(10, 510, 1, 52));
  });
});

describe("the window of a log with a hole", () => {
  const holes = [hole(4, 5, 4_000, 6_000)];
  const before = base("b-1", 1_500);

  test("ends at the hole until a base follows it, and leads around it from then on", () => {
    const damaged = archive(range({ holes }));
    expect(restorableOf("postgresql", damaged, [before])).toEqual({ span: { from: 1_510, to: 4_000 }, gaps: [] });
    const after = base("b-2", 6_500);
    expect(restorableOf("postgresql", damaged, [before, after])).toEqual({
      span: { from: 1_510, to: 9_000 },
      gaps: [{ from: 4_000, to: 6_510 }],
    });
    expect(choosePoint(4_000, "postgresql", damaged, [before, after]).backupId).toBe("b-1");
    expect(choosePoint(7_000, "postgresql", damaged, [before, after]).backupId).toBe("b-2");
    for (const point of [4_001, 5_000, 6_509])
      expect(() => choosePoint(point, "postgresql", damaged, [before, after])).toThrow("is in a gap of the log");
  });

  test("a base that began inside of it has no log, and one after it reads only the log behind it", () => {
    const log = [range({ holes }), range({ term: 2, fromTime: 9_000, toTime: 12_000, continues: true })];
    expect(logAfter(base("b-1", 5_000), log)).toBeUndefined();
    const sequences = (of: BackupObject) =>
      logAfter(of, log)?.map(({ term, firstSequence, lastSequence }) => [term, firstSequence, lastSequence]);
    expect(sequences(before)).toEqual([[1, 1, 3]]);
    expect(sequences(base("b-2", 6_500))).toEqual([
      [1, 6, 9],
      [2, 1, 9],
    ]);
  });

  test("a new base is due immediately, unless one follows the hole", () => {
    const damaged = archive(range({ holes }));
    const due = (backups: readonly BackupObject[]) =>
      dueBackup(service, damaged, backups, { now, finalBackupTimeoutMs: 0 });
    expect(due([before])).toEqual({ kind: "now", trigger: "gap" });
    expect(due([before, base("b-2", 6_500)]).kind).toBe("at");
  });
});

describe("a damaged backup", () => {
  const intact = base("b-1", 1_500);
  const full = base("b-2", 3_000, { isDamaged: true });
  const increment = base("b-3", 5_000, {}, "b-2");

  test("restores nothing, as do its increments: the log continues from the one before", () => {
    const undamagedLog = archive(range());
    const { span } = restorableOf("postgresql", undamagedLog, [full, increment]);
    expect(span).toBeUndefined();
    expect(restorableOf("postgresql", undamagedLog, [intact, full, increment]).span).toEqual({
      from: 1_510,
      to: 9_000,
    });
    expect(choosePoint(8_000, "postgresql", undamagedLog, [intact, full, increment]).backupId).toBe("b-1");
    expect(choosePoint(6_000, "valkey", undefined, [intact, full, base("b-4", 7_000)]).backupId).toBe("b-1");
  });

  test("is followed by a new base immediately, unless the log continues from an intact one", () => {
    const due = (of: ArchiveObject, backups: readonly BackupObject[]) =>
      dueBackup(service, of, backups, { now, finalBackupTimeoutMs: 0 });
    expect(due(archive(range({ fromTime: 2_000 })), [full, increment])).toEqual({ kind: "now", trigger: "gap" });
    expect(due(archive(range()), [intact, full]).kind).toBe("at");
    expect(due(archive(), [intact, full])).toEqual({ kind: "now", trigger: "gap" });
  });
});
