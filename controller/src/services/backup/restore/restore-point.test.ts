import { describe, expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { type ArchiveObject, type LogRange, newArchive, sourceOf } from "../archive/archive.ts";
import { type BackupObject, newBackupObject } from "../backup.ts";
import { logAfter, logTo } from "./restorable.ts";
import { choosePoint, serviceIn, sourceIn } from "./restore-point.ts";

const now = 1_000_000;

function base(id: string, restoresTo: number): BackupObject {
  const made = newBackupObject(
    id,
    "org",
    {
      serviceId: "service-1",
      databaseType: "postgresql",
      version: "17",
      backupType: "automated",
      kind: "full",
      trigger: "schedule",
      operationId: "op",
      keyVersion: 1,
      wrappedKey: "",
    },
    restoresTo - 10,
  );
  return { ...made, status: { ...made.status, state: "completed", startedAt: restoresTo - 10, restoresTo } };
}

function archive(...ranges: readonly (readonly [from: number, to: number])[]): ArchiveObject {
  const made = newArchive(runningService(), 0, 0);
  const log = ranges.map(([fromTime, toTime], at): LogRange => {
    const of = { archiveId: `a-${at}`, term: 1, firstSequence: 1, lastSequence: 9, keys: [], checkpoints: [] };
    return { ...of, fromTime, toTime };
  });
  return { ...made, status: { ...made.status, log } };
}

const chosen = (type: string, point: number, recorded: ArchiveObject, backups: readonly BackupObject[]) => {
  try {
    return choosePoint(point, type, recorded, backups);
  } catch (error) {
    const { key, members } = error as { key: string; members: Record<string, unknown> };
    return { key, ...members };
  }
};
const at = (ms: number) => new Date(ms).toISOString();

describe("a log of several terms", () => {
  const backups = [base("b-1", 1_000), base("b-2", 5_000)];
  const range = (term: number, fromTime: number, toTime: number, over: Partial<LogRange> = {}): LogRange => ({
    archiveId: "a-1",
    term,
    fromTime,
    toTime,
    firstSequence: 1,
    lastSequence: 9,
    keys: [],
    checkpoints: [],
    ...over,
  });
  const of = (...log: readonly LogRange[]): ArchiveObject => {
    const made = archive();
    return { ...made, status: { ...made.status, log } };
  };
  const chain = of(
    range(1, 500, 2_000),
    range(2, 2_500, 3_000, { continues: true }),
    range(4, 4_000, 8_000, { continues: true }),
  );

  test.each([1_500, 2_200, 2_800, 3_500, 4_500])("%d is restored from the base of the first term", (point) => {
    expect(chosen("postgresql", point, chain, backups)).toEqual({ backupId: "b-1", targetTime: point });
  });
  test("the log after a base begins with the range in which the base began", () => {
    const [first, second] = backups;
    const terms = (backup: BackupObject | undefined) =>
      backup && logAfter(backup, chain.status.log)?.map(({ term }) => term);
    expect([terms(first), terms(second)]).toEqual([[1, 2, 4], [4]]);
  });
  test("the log after a base of an abandoned term ends with that term", () => {
    const recorded = of(
      range(1, 500, 2_000),
      range(2, 2_500, 5_500, { continues: true, isAbandoned: true }),
      range(3, 6_000, 8_000, { continues: true }),
    );
    const terms = backups.map((backup) => logAfter(backup, recorded.status.log)?.map(({ term }) => term));
    expect(terms).toEqual([[1, 3], [2]]);
  });
  const slowMs = 10_000;
  test("moments repeated because the next primary's clock was behind are a gap", () => {
    const behind = of(range(1, 500, 200_000), range(2, 100_000, 300_000, { continues: true }));
    const refused = {
      key: "RESTORE_POINT_UNAVAILABLE",
      earliest: at(1_000),
      latest: at(300_000),
      gaps: [{ from: at(100_000 - slowMs), to: at(200_000 + slowMs) }],
    };
    expect(chosen("postgresql", 150_000, behind, backups)).toEqual(refused);
    for (const point of [90_000, 210_000])
      expect(chosen("postgresql", point, behind, backups)).toEqual({ backupId: "b-2", targetTime: point });
    // Also from a base that the next primary took before.
    expect(chosen("postgresql", 150_000, behind, [...backups, base("b-3", 120_000)])).toMatchObject(refused);
  });
  test("the window ends before repeated moments until the clock has passed them", () => {
    const behind = of(range(1, 500, 200_000), range(2, 100_000, 150_000, { continues: true }));
    expect(chosen("postgresql", 120_000, behind, backups)).toMatchObject({ latest: at(90_000), gaps: [] });
  });
  test("moments repeated because a primary's clock was set back are a gap", () => {
    const back = of(range(1, 500, 400_000, { repeated: [{ from: 100_000, to: 200_000 }] }));
    expect(chosen("postgresql", 150_000, back, backups)).toMatchObject({
      gaps: [{ from: at(90_000), to: at(210_000) }],
    });
  });
  test("log that does not continue the previous term leaves a gap", () => {
    const apart = of(range(1, 500, 2_000), range(2, 4_000, 8_000, { archiveId: "a-2" }));
    expect(chosen("postgresql", 3_000, apart, backups)).toEqual({
      key: "RESTORE_POINT_UNAVAILABLE",
      earliest: at(1_000),
      latest: at(8_000),
      gaps: [{ from: at(2_000), to: at(5_000) }],
    });
  });
});

describe("a term whose primary was replaced while only it had its last log", () => {
  const range = (term: number, fromTime: number, toTime: number, over: Partial<LogRange> = {}): LogRange => {
    const of = {
      archiveId: "a-1",
      term,
      fromTime,
      toTime,
      firstSequence: 1,
      lastSequence: 9,
      keys: [],
      checkpoints: [],
    };
    return { ...of, ...over };
  };
  const tail = { lastSequence: 12, fromTime: 3_000, toTime: 4_000 };
  const log = [range(1, 500, 5_000, { tail }), range(2, 5_000, 9_000, { continues: true })];
  const recorded = { ...archive(), status: { ...archive().status, log } };
  const first = base("b-1", 1_000);
  const read = (backup: BackupObject, point: number) =>
    logTo(backup, log, point)?.map(({ term, lastSequence }) => [term, lastSequence]);

  test.each<[number, number[][]]>([
    [
      2_000,
      [
        [1, 9],
        [2, 9],
      ],
    ],
    [
      3_000,
      [
        [1, 9],
        [2, 9],
      ],
    ],
    [3_001, [[1, 12]]],
    [4_000, [[1, 12]]],
    [
      4_001,
      [
        [1, 9],
        [2, 9],
      ],
    ],
    [
      8_000,
      [
        [1, 9],
        [2, 9],
      ],
    ],
  ])("%d is restored with the log of the primary that committed it", (point, expected) => {
    expect(read(first, point)).toEqual(expected);
    expect(chosen("postgresql", point, recorded, [first])).toEqual({ backupId: "b-1", targetTime: point });
  });

  test("a base in that log is continued by that log only", () => {
    const made = base("b-2", 3_500);
    const second = { ...made, status: { ...made.status, term: 1 } };
    expect(read(second, 4_000)).toEqual([[1, 12]]);
    const from = (point: number) => chosen("postgresql", point, recorded, [first, second]);
    expect(from(3_900)).toEqual({ backupId: "b-2", targetTime: 3_900 });
    expect(from(8_000)).toEqual({ backupId: "b-1", targetTime: 8_000 });
    expect(chosen("postgresql", 8_000, recorded, [second])).toMatchObject({ latest: at(4_000) });
  });
});

describe("a restore point with a log", () => {
  const backups = [base("b-1", 1_000), base("b-2", 3_000), base("b-3", 6_000)];
  const recorded = archive([500, 4_000], [5_000, 9_000]);
  const refused = {
    key: "RESTORE_POINT_UNAVAILABLE",
    earliest: at(1_000),
    latest: at(9_000),
    gaps: [{ from: at(4_000), to: at(6_000) }],
  };
  test.each([
    ["the earliest moment is that of the first base", 1_000, { backupId: "b-1", targetTime: 1_000 }],
    ["a time is restored from the newest base before it", 3_500, { backupId: "b-2", targetTime: 3_500 }],
    ["the last moment before a gap is restored", 4_000, { backupId: "b-2", targetTime: 4_000 }],
    ["the first base behind a gap is restored", 6_000, { backupId: "b-3", targetTime: 6_000 }],
    ["the newest moment is restored", 9_000, { backupId: "b-3", targetTime: 9_000 }],
    ["a time before the earliest is refused", 999, refused],
    ["a time in a gap is refused", 5_500, refused],
    ["a time after the newest is refused", 9_001, refused],
    ["the future is refused", now + 1, refused],
  ])("%s", (_, point, expected) => {
    expect(chosen("postgresql", point, recorded, backups)).toEqual(expected);
  });

  test("the window begins with the log of a base, though its own data are older", () => {
    const [first] = backups as [BackupObject];
    const own = { ...first, status: { ...first.status, restoresTo: 900, consistentAt: 1_100 } };
    expect(chosen("postgresql", 1_100, recorded, [own])).toEqual({ backupId: "b-1", targetTime: 1_100 });
    expect(chosen("postgresql", 1_000, recorded, [own])).toMatchObject({ earliest: at(1_100) });
  });
  test("nothing can be restored before log follows a base", () => {
    expect(chosen("postgresql", 2_000, archive(), backups)).toMatchObject({ earliest: null, latest: null });
  });
});

test("a snapshot without a position in the log is restored alone, and begins no window", () => {
  const dump = (id: string, restoresTo: number, consistentAt?: number): BackupObject => {
    const { spec, status, ...rest } = base(id, restoresTo);
    const of = { ...spec, databaseType: "mysql", kind: "snapshot" } as const;
    return { ...rest, spec: of, status: { ...status, ...(consistentAt !== undefined && { consistentAt }) } };
  };
  const recorded = archive([500, 9_000]);
  const older = dump("b-1", 1_000);
  expect(chosen("mysql", 2_000, recorded, [older])).toMatchObject({ earliest: null, latest: null });
  const all = [older, dump("b-2", 3_000, 3_000), dump("b-3", 5_000)];
  expect(chosen("mysql", 2_000, recorded, all)).toMatchObject({ earliest: at(3_000), latest: at(9_000) });
  expect(chosen("mysql", 6_000, recorded, all)).toEqual({ backupId: "b-2", targetTime: 6_000 });
});

test("without a log a time of the window is restored from the newest backup at or before it", () => {
  const backups = [base("b-1", 1_000), base("b-2", 3_000)];
  expect(chosen("valkey", 2_999, archive(), backups)).toEqual({ backupId: "b-1", targetTime: null });
  expect(chosen("valkey", 3_000, archive(), backups)).toEqual({ backupId: "b-2", targetTime: null });
  expect(chosen("valkey", 999, archive(), backups)).toMatchObject({
    key: "RESTORE_POINT_UNAVAILABLE",
    earliest: at(1_000),
  });
  for (const point of [3_001, now + 1])
    expect(chosen("valkey", point, archive(), backups)).toEqual({
      key: "RESTORE_POINT_UNAVAILABLE",
      earliest: at(1_000),
      latest: at(3_000),
      gaps: [],
    });
});

test("a backup without one moment is restored by its id alone, and the refusal names the newest one", () => {
  const choose = (...backups: readonly BackupObject[]) => choosePoint(now, "kafka", undefined, backups);
  expect(() => choose(base("older", 10), base("newer", 20))).toThrow(/restore a backup by its id.*newest one is newer/);
  expect(() => choose()).toThrow(/There is none yet/);
});

const parameters = { work_mem: "5MB", frobnicate: "on" };
const service = runningService({}, { version: "18", image: "sid-1", parameters });

test("a copy has its backup's version, and the parameters that the version has", () => {
  const source = sourceOf(service);
  expect(sourceIn("17", source)).toMatchObject({ version: "17", parameters: { work_mem: "5MB" } });
  expect(sourceIn("17", source).parameters).not.toHaveProperty("frobnicate");
  expect(sourceIn("18", source)).toEqual(source);
});

test("an undeleted service has its backup's version, and the parameters that the version has", () => {
  const { spec } = serviceIn("17", service);
  expect(spec).toMatchObject({ version: "17", image: "" });
  expect(spec.parameters).toEqual({ work_mem: "5MB" });
  expect(serviceIn("18", service)).toEqual(service);
});
