import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { type ArchiveObject, type LogRange, newArchive } from "./archive.ts";
import { type BackupObject, type BackupType, newBackupObject } from "../backup.ts";
import { type DueExpiry, dueExpiry } from "./backup-retention.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const service = runningService();
const { organizationId } = service.metadata;

function backup(id: string, backupType: BackupType, at: number): BackupObject {
  const request = { serviceId: service.metadata.id, databaseType: "postgresql", version: "17", operationId: "op" };
  const facts = { kind: "full", trigger: "schedule", keyVersion: 1, wrappedKey: "" } as const;
  const made = newBackupObject(id, organizationId, { ...request, ...facts, backupType }, at);
  const status = { ...made.status, state: "completed", startedAt: at, finishedAt: at, restoresTo: at } as const;
  return { ...made, status };
}

/** An archive with a term for each day, of ten objects. */
function archiveOf(days: number, deleted: ArchiveObject["status"]["deleted"] = null): ArchiveObject {
  const made = newArchive(service, 0, 0);
  const log = Array.from({ length: days }, (_, day): LogRange => {
    const [fromTime, toTime] = [day * dayMs, (day + 1) * dayMs - hourMs];
    const of = { archiveId: "a", term: day + 1, firstSequence: 1, lastSequence: 10, keys: [], checkpoints: [] };
    return { ...of, fromTime, toTime, continues: day > 0 };
  });
  const current = { archiveId: "a", keyId: "k", keyVersion: 1, wrappedKey: "", since: 0 };
  return { ...made, spec: { ...made.spec, log: current }, status: { ...made.status, log, deleted } };
}

const never = () => false;
const daily = [0, 1, 2].map((day) => backup(`day-${day}`, "automated", day * dayMs));
const described = (due: readonly DueExpiry[]) =>
  due.map((each) => {
    if (each.kind === "backup") return `${each.backup.metadata.id}${each.isRead ? " is read" : ""}`;
    return each.kind === "log" ? `term ${each.range.term}: ${each.objects} objects` : "all";
  });

test("nothing expires early", () => {
  const observed = { archive: archiveOf(3), serviceExists: true, backups: daily, isRead: never };
  expect(described(dueExpiry(observed, 7 * dayMs - 1))).toEqual([]);
});

test("a backup expires with the log that only it needs, and the newest one is retained", () => {
  const observed = { archive: archiveOf(3), serviceExists: true, backups: daily, isRead: never };
  expect(described(dueExpiry(observed, 7 * dayMs))).toEqual(["day-0", "term 1: 10 objects"]);
  expect(described(dueExpiry(observed, 100 * dayMs))).toEqual([
    "day-0",
    "day-1",
    "term 1: 10 objects",
    "term 2: 10 objects",
  ]);
});

test("a backup that is being read retains its log", () => {
  const observed = { archive: archiveOf(3), serviceExists: true, backups: daily, isRead: () => true };
  expect(described(dueExpiry(observed, 7 * dayMs))).toEqual(["day-0 is read"]);
});

test("a backup that is retained only for an increment retains no log", () => {
  const since = daily.map((each, day) =>
    day === 0 ? each : { ...each, spec: { ...each.spec, baseId: `day-${day - 1}` } },
  );
  const observed = { archive: archiveOf(3), serviceExists: true, backups: since, isRead: never };
  expect(described(dueExpiry(observed, 7 * dayMs))).toEqual(["term 1: 10 objects"]);
  expect(described(dueExpiry(observed, 100 * dayMs))).toEqual(["term 1: 10 objects", "term 2: 10 objects"]);
});

test("after the time for an undelete everything but manual backups expires", () => {
  const deleted = { at: 0, until: 7 * dayMs, backupId: "day-2", service, users: [] };
  const deletedService = { archive: archiveOf(3, deleted), serviceExists: false, backups: daily, isRead: never };
  expect(described(dueExpiry(deletedService, 7 * dayMs - 1))).toEqual([]);
  expect(described(dueExpiry(deletedService, 7 * dayMs))).toEqual(["day-0", "day-1", "day-2", "all"]);
  const byHand = [...daily, backup("by hand", "manual", 0)];
  expect(described(dueExpiry({ ...deletedService, backups: byHand }, 7 * dayMs))).toEqual(["day-0", "day-1", "day-2"]);
  const forGood = { ...deletedService, archive: archiveOf(3), backups: byHand };
  expect(described(dueExpiry(forGood, 0))).toEqual(["day-0", "day-1", "day-2"]);
});
