import fc from "fast-check";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { type ArchiveObject, newArchive } from "./archive/archive.ts";
import { basesOf, chainOf, nextBase } from "./backup-chain.ts";
import { expired, deletedAtOf } from "./archive/backup-retention.ts";
import { type BackupObject, type BackupSpec, type BackupStatus, newBackupObject } from "./backup.ts";

const dayMs = 86_400_000;
const service = runningService();
const { term } = service.status;
const settings = { hour: 3, minute: 30, retentionDays: 7 };
const request = {
  serviceId: service.metadata.id,
  databaseType: "postgresql",
  version: service.spec.version,
  backupType: "automated",
  trigger: "schedule",
  operationId: "op",
  keyVersion: 1,
  wrappedKey: "",
} as const;

function archive(retentionDays = 7): ArchiveObject {
  const made = newArchive(service, 0, 0);
  return { ...made, spec: { ...made.spec, settings: { ...settings, retentionDays } } };
}

function backup(
  day: number,
  baseDay: number | undefined,
  status: Partial<BackupStatus> = {},
  spec: Partial<BackupSpec> = {},
): BackupObject {
  const at = day * dayMs;
  const of = baseDay === undefined ? { kind: "full" } : { kind: "incremental", baseId: `day-${baseDay}` };
  const made = newBackupObject(`day-${day}`, "org", { ...request, ...of, ...spec } as never, at);
  const done = { state: "completed", startedAt: at, finishedAt: at, restoresTo: at, term, hasPageMap: true } as const;
  return { ...made, status: { ...made.status, ...done, ...status } };
}

const week = [backup(0, undefined), ...[1, 2, 3, 4, 5, 6].map((day) => backup(day, day - 1))];
const baseAt = (day: number, backups: readonly BackupObject[], retentionDays = 7) =>
  nextBase(service, archive(retentionDays), backups, day * dayMs)?.metadata.id;
const changed = (at: number, status: Partial<BackupStatus>, spec: Partial<BackupSpec> = {}) =>
  week.map((each, day) => (day === at ? backup(day, day === 0 ? undefined : day - 1, status, spec) : each));

test("a chain is the full backup and all increments up to one", () => {
  const get = (id: string) => week.find(({ metadata }) => metadata.id === id);
  expect(chainOf(week[2] as BackupObject, get)?.map(({ metadata }) => metadata.id)).toEqual([
    "day-0",
    "day-1",
    "day-2",
  ]);
  expect(chainOf(week[2] as BackupObject, (id) => (id === "day-0" ? undefined : get(id)))).toBeUndefined();
});

test.each([
  ["a full one, if there is none", 0, [], undefined],
  ["an increment since the full one", 1, week.slice(0, 1), "day-0"],
  ["an increment since the last one", 6, week.slice(0, 6), "day-5"],
  ["a full one once a week", 7, week, undefined],
  ["a full one though the clock is a little early", 6.99, week, undefined],
  ["a full one after a failure", 3, changed(2, { state: "failed" }).slice(0, 3), undefined],
  ["an increment across a failover", 3, changed(2, { term: term - 1 }).slice(0, 3), "day-2"],
  ["a full one over another version", 3, changed(2, {}, { version: "16" }).slice(0, 3), undefined],
  ["a full one after one without a page map", 3, changed(2, { hasPageMap: false }).slice(0, 3), undefined],
  ["a full one when a backup of the chain is damaged", 3, changed(0, { damage: "flipped" }).slice(0, 3), undefined],
  [
    "an increment that is not based on a manual backup",
    3,
    [...week.slice(0, 3), backup(9, undefined, {}, { backupType: "manual" })],
    "day-2",
  ],
] as const)("the next daily backup is %s", (_, day, backups, base) => {
  expect(baseAt(day, backups)).toBe(base);
});

test("a full backup is taken as often as retention ends one", () => {
  expect(baseAt(1, week.slice(0, 1), 2)).toBe("day-0");
  expect(baseAt(2, week.slice(0, 2), 2)).toBeUndefined();
});

test("the base of an increment is retained as long as the increment, and its expiry says so", () => {
  const first = week[0] as BackupObject;
  const next = [...week, backup(7, undefined), backup(8, 7)];
  const at = (day: number) => expired(archive(), next, settings, day * dayMs).map(({ metadata }) => metadata.id);
  expect(at(12.9)).toEqual([]);
  expect(at(13)).toEqual(week.map(({ metadata }) => metadata.id));
  expect(deletedAtOf(first, next, settings)).toBe(13 * dayMs);
  expect(deletedAtOf(first, [first], settings)).toBe(7 * dayMs);
});

test("an increment in progress retains its base", () => {
  const next = [...week, backup(8, 6, { state: "running", finishedAt: null }), backup(20, undefined)];
  expect(expired(archive(), next, settings, 30 * dayMs)).toEqual([]);
});

test("in any order of expiry, each remaining backup has all its bases", () => {
  const made = fc.record({
    isFull: fc.boolean(),
    isFailed: fc.boolean(),
    back: fc.nat({ max: 3 }),
    days: fc.nat({ max: 3 }),
  });
  fc.assert(
    fc.property(fc.array(made, { maxLength: 20 }), fc.array(fc.nat({ max: 40 }), { maxLength: 5 }), (plans, looks) => {
      let day = 0;
      let all: BackupObject[] = [];
      for (const { isFull, isFailed, back, days } of plans) {
        const base = all.filter(({ status }) => status.state === "completed").at(-1 - back);
        const baseDay = isFull || base === undefined ? undefined : Number(base.metadata.id.slice(4));
        all.push(backup((day += 1 + days), baseDay, { state: isFailed ? "failed" : "completed" }));
      }
      for (const look of looks.toSorted((a, b) => a - b)) {
        const over = new Set(expired(archive(), all, settings, look * 2 * dayMs));
        all = all.filter((each) => !over.has(each));
        const ids = new Set(all.map(({ metadata }) => metadata.id));
        const retained = all.filter(({ status }) => status.state === "completed");
        const needed = basesOf(retained, (id) => all.find(({ metadata }) => metadata.id === id));
        expect([...needed].filter((id) => !ids.has(id))).toEqual([]);
      }
    }),
    { numRuns: 300 },
  );
});
