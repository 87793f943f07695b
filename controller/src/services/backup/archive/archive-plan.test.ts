import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { type ArchiveObject, defaultSettings, type LogRange, newArchive, nextDaily } from "./archive.ts";
import { dueBackup, firstDueAt } from "./archive-plan.ts";
import { expired } from "./backup-retention.ts";
import { type BackupObject, type BackupSpec, newBackupObject } from "../backup.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const now = Date.parse("2026-11-22T12:00:00Z");
const service = runningService({ createdAt: now });
const settings = { hour: 3, minute: 30, retentionDays: 7 };

function archive(status: Partial<ArchiveObject["status"]> = {}): ArchiveObject {
  const made = newArchive(service, now, now);
  return { ...made, spec: { ...made.spec, settings }, status: { ...made.status, ...status } };
}

/** An archive whose log is stored up to the time of its last automated backup. */
function archivedAt(time: number): ArchiveObject {
  const { spec, ...rest } = archive({ lastAutomatedAt: time });
  const log = { archiveId: "a-1", since: 0, keyId: "k-1", keyVersion: 1, wrappedKey: "" };
  const stored = { archiveId: "a-1", term: 1, firstSequence: 1, lastSequence: 9, keys: [], checkpoints: [] };
  const status = { ...rest.status, log: [{ ...stored, fromTime: time - hourMs, toTime: time }] };
  return { ...rest, spec: { ...spec, log }, status };
}

let made = 0;
function backup(ageMs: number, state: BackupObject["status"]["state"], spec: Partial<BackupSpec> = {}): BackupObject {
  const request = {
    serviceId: "service-1",
    databaseType: "postgresql",
    version: "17",
    backupType: "automated",
    kind: "full",
    trigger: "schedule",
    operationId: "op",
    keyVersion: 1,
    wrappedKey: "",
    ...spec,
  } as const;
  const fresh = newBackupObject(`b-${String((made += 1)).padStart(4, "0")}`, "org", request as never, now - ageMs);
  const finishedAt = state === "completed" || state === "failed" ? now - ageMs : null;
  return { ...fresh, status: { ...fresh.status, state, finishedAt } };
}

test.each([
  ["today, when it is still to come", "2026-11-22T01:00:00Z", "2026-11-22T03:30:00.000Z"],
  ["tomorrow, when it is over", "2026-11-22T03:30:00Z", "2026-11-23T03:30:00.000Z"],
])("a daily time is %s", (_, after, next) => {
  expect(new Date(nextDaily(settings, Date.parse(after))).toISOString()).toBe(next);
});

test("default times follow from the id and are spread over the day", () => {
  const hours = new Set(Array.from({ length: 500 }, (_, at) => defaultSettings(`s-${at}`).hour));
  expect(defaultSettings("s-1")).toEqual(defaultSettings("s-1"));
  expect(hours.size).toBe(24);
});

test("a new service's first backup is due soon, those of old services are spread over a day", () => {
  expect(firstDueAt(service, 60_000, now)).toBe(now + 60_000);
  const old = Array.from({ length: 200 }, (_, at) => runningService({ id: `s-${at}`, createdAt: now - 2 * dayMs }));
  const waits = old.map((each) => firstDueAt(each, 60_000, now) - now);
  expect(Math.max(...waits)).toBeGreaterThan(20 * hourMs);
  expect(Math.max(...waits)).toBeLessThan(dayMs);
});

const withFinalBackup = runningService({ createdAt: now, deletionRequestedAt: now }, { finalBackup: "wanted" });
const once = archive({ lastAutomatedAt: now - hourMs });
test.each([
  ["the first one is due", service, archive(), [], { kind: "now", trigger: "first" }],
  ["the first one is not due yet", service, archive({ firstDueAt: now + 5 }), [], { kind: "at", at: now + 5 }],
  [
    "it waits for an operation of the service",
    runningService({}, {}, { operationId: "op" }),
    archive(),
    [],
    { kind: "none" },
  ],
  [
    "one follows a change of the image",
    service,
    archive({ lastAutomatedAt: now - hourMs, imageChangedAt: now - 5 }),
    [backup(hourMs, "completed")],
    { kind: "now", trigger: "upgrade" },
  ],
  ["it waits for the one in progress", service, archive(), [backup(5, "running")], { kind: "none" }],
  [
    "the next is due tomorrow",
    service,
    once,
    [backup(hourMs, "completed")],
    { kind: "at", at: Date.parse("2026-11-23T03:30:00Z") },
  ],
  [
    "a failed one is repeated soon",
    service,
    archive({ lastAutomatedAt: now }),
    [backup(0, "failed")],
    { kind: "at", at: now + hourMs },
  ],
  [
    "one on which the archived log cannot be replayed is repeated soon",
    service,
    archivedAt(now),
    [backup(0, "completed", { databaseType: "mysql", kind: "snapshot" })],
    { kind: "at", at: now + hourMs },
  ],
  [
    "one without a position in the log is not repeated while no log is archived",
    service,
    archive({ lastAutomatedAt: now }),
    [backup(0, "completed", { databaseType: "mysql", kind: "snapshot" })],
    { kind: "at", at: Date.parse("2026-11-23T03:30:00Z") },
  ],
  [
    "an undeleted service gets a base immediately, though the last backup failed",
    service,
    archive({ firstDueAt: now }),
    [backup(0, "failed", { trigger: "final" })],
    { kind: "now", trigger: "first" },
  ],
  [
    "it is due when the daily time has come",
    service,
    archive({ lastAutomatedAt: now - 10 * hourMs }),
    [],
    { kind: "now", trigger: "schedule" },
  ],
  [
    "a manual one changes nothing",
    service,
    archive(),
    [backup(5, "completed", { backupType: "manual" })],
    { kind: "now", trigger: "first" },
  ],
  [
    "a deletion has its final backup",
    withFinalBackup,
    archive(),
    [backup(5, "completed")],
    { kind: "now", trigger: "final" },
  ],
  [
    "a deletion has one final backup",
    withFinalBackup,
    archive(),
    [backup(5, "completed", { trigger: "final" })],
    { kind: "none" },
  ],
  [
    "a failed final backup is repeated",
    withFinalBackup,
    archive(),
    [backup(hourMs / 2, "failed", { trigger: "final" })],
    { kind: "now", trigger: "final" },
  ],
  [
    "a failed final backup is not repeated after its time limit",
    runningService({ deletionRequestedAt: now - 2 * hourMs }, { finalBackup: "wanted" }),
    archive(),
    [backup(hourMs, "failed", { trigger: "final" })],
    { kind: "none" },
  ],
  [
    "a deletion that skips it has no final backup",
    runningService({ deletionRequestedAt: now }, { finalBackup: "skipped" }),
    archive(),
    [],
    { kind: "none" },
  ],
] as const)("%s", (_, of, current, backups, due) => {
  expect(dueBackup(of, current, backups, { now, finalBackupTimeoutMs: hourMs })).toEqual(due);
});

const logKey = { keyId: "k", keyVersion: 1, wrappedKey: "" };
const range = (term: number, fromTime: number, toTime: number, change: Partial<LogRange> = {}): LogRange => ({
  archiveId: "a-1",
  term,
  firstSequence: 1,
  lastSequence: 5,
  fromTime,
  toTime,
  keys: [logKey],
  checkpoints: [],
  ...change,
});
/** A base of an hour ago, in the first term. */
const base = (() => {
  const { status, ...of } = backup(hourMs, "completed");
  return { ...of, status: { ...status, startedAt: now - hourMs, restoresTo: now - hourMs + 5 } };
})();
test.each([
  ["log continues a base in its own term", [range(1, now - 2 * hourMs, now)], undefined],
  [
    "log continues a base through a failover",
    [range(1, now - 2 * hourMs, now - 9), range(2, now - 8, now, { continues: true })],
    undefined,
  ],
  [
    "a term that does not continue the previous one needs a base",
    [range(1, now - 2 * hourMs, now - 9), range(2, now - 8, now)],
    "gap",
  ],
  [
    "another archive needs a base",
    [range(1, now - 2 * hourMs, now - 9, { archiveId: "a-0" }), range(1, now - 8, now)],
    "gap",
  ],
] as const)("%s", (_, log, trigger) => {
  const current = archive({ lastAutomatedAt: now - hourMs, log });
  const followed = { ...current, spec: { ...current.spec, log: { archiveId: "a-1", since: 0, ...logKey } } };
  const due = dueBackup(service, followed, [base], { now, finalBackupTimeoutMs: hourMs });
  expect(due.kind === "now" ? due.trigger : undefined).toBe(trigger);
});

const ids = (backups: readonly BackupObject[]) => backups.map(({ metadata }) => metadata.id);

test("retention ends automated backups only, and never the newest completed one of an existing service", () => {
  const old = backup(9 * dayMs, "completed");
  const newest = backup(8 * dayMs, "completed");
  const failed = backup(8 * dayMs, "failed");
  const manual = backup(99 * dayMs, "completed", { backupType: "manual" });
  const running = backup(8 * dayMs, "running");
  const all = [manual, old, newest, failed, running];
  expect(ids(expired(archive(), all, settings, now))).toEqual(ids([old, failed]));
  expect(ids(expired(archive(), all, { ...settings, retentionDays: 30 }, now))).toEqual([]);
  const fresh = backup(dayMs, "completed");
  expect(ids(expired(archive(), [...all, fresh], settings, now))).toEqual(ids([old, newest, failed]));
});
