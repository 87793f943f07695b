import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { systemClock } from "@holdfast/common/clock.ts";
import { logObject, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { ArchiveObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { uuidv7 } from "uuidv7";
import { expect, test } from "vitest";
import { requestedBackup } from "../../../../test/support/controller/requested-backup.ts";
import { runningService } from "../../../../test/support/controller/service-object.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { archiveKind, type LogRange, newArchive } from "./archive.ts";
import type { ArchiveWorkDeps } from "./archive-deps.ts";
import { createArchiveWork } from "./archive-reconciler.ts";
import { newBackupKey, newDataKey } from "./backup-key.ts";
import { type BackupObject, newBackupObject } from "./backup.ts";
import { partial } from "../../../../test/support/partial.ts";

const service = runningService({});
const { id, organizationId } = service.metadata;
const request = { ...requestedBackup, serviceId: id, backupType: "automated", trigger: "schedule" } as const;

test("a service that is undeleted during a reconcile of its archive keeps its automated backups", async () => {
  const made = newBackupObject("b-1", organizationId, request, 0);
  const backup = { ...made, status: { ...made.status, state: "completed", finishedAt: 0 } } as const;
  const archive = newArchive(service, 0, 0);
  const deleted = { at: 0, until: Number.MAX_SAFE_INTEGER, backupId: "b-1", service, users: [] };
  const gone = { ...archive, status: { ...archive.status, deleted } };
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  /** The undelete is one transaction, between two reads of the store. */
  let looks = 0;
  const isBack = () => (looks += 1) > 1;
  const removed: string[] = [];
  const unit = {
    onlyWhile: () => undefined,
    update: (_: unknown, { object }: { object: { metadata: { id: string } } }) => removed.push(object.metadata.id),
    commit: async () => 2n,
  };
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      services: { get: () => undefined, getCurrent: async () => (isBack() ? stored(service) : undefined) },
      archives: { get: () => stored(gone), getCurrent: async () => stored(isBack() ? archive : gone) },
      backups: { get: () => stored(backup), reached: async () => undefined },
      index: { of: () => [stored(backup)] },
      organizations: { get: () => stored({}) },
      readersOf: () => [],
      expiryDeferred: () => false,
      begin: () => unit,
      clock: systemClock,
      log: silentLog,
    }),
  );
  await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
  expect(removed).toEqual([]);
});

test("a log with a gap continues as another archive, and one event is emitted", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-gap-"));
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const key = newBackupKey(id, organizationId, sealer, 0);
  const log = { archiveId: "a-1", keyId: "k-1", ...newDataKey(key, "k-1", sealer), since: 0 };
  const made = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
  let archive = { ...made, spec: { ...made.spec, log } };
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const durableTime = timestampFromMs(1_000);
  const report = create(ArchiveObservationSchema, { archiveId: "a-1", state: "gap", durableTime, term: 1n });
  const events: { type: string; data: object }[] = [];
  const unit = {
    update: (kind: unknown, _: unknown, object: unknown) => {
      if (kind === archiveKind) archive = object as typeof archive;
    },
    event: (event: { type: string; data: object }) => events.push(event),
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      services: { get: () => stored(service) },
      archives: { get: () => stored(archive), reached },
      backups: { reached },
      backupKeys: { get: () => stored(key), reached },
      index: { of: () => [] },
      fleet: { observation: () => ({ instance: { archive: report } }) },
      objects: createDirectoryStore(directory),
      readersOf: () => [],
      expiryDeferred: () => false,
      begin: () => unit,
      newId: uuidv7,
      sealer,
      clock: systemClock,
      log: silentLog,
    }),
  );
  try {
    await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
    expect(archive.spec.log?.archiveId).not.toBe("a-1");
    // The machine's report is about the old archive by now.
    await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
    expect(events).toMatchObject([{ type: "backup.gap", data: { service_id: id } }]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a pause of deletions retains expired backups and log, and new log is recorded meanwhile", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-paused-deletions-"));
  const objects = createDirectoryStore(directory);
  const dayMs = 86_400_000;
  const now = 100 * dayMs;
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const key = newBackupKey(id, organizationId, sealer, now);
  const log = { archiveId: "a-1", keyId: "k-1", ...newDataKey(key, "k-1", sealer), since: 0 };
  const range = (term: number, day: number): LogRange => {
    const [fromTime, toTime] = [day * dayMs, (day + 1) * dayMs];
    const of = { archiveId: "a-1", term, firstSequence: 1, lastSequence: 2, keys: [log], checkpoints: [] };
    return { ...of, fromTime, toTime, continues: term > 1 };
  };
  const made = newArchive(service, Number.MAX_SAFE_INTEGER, now);
  const lastAutomatedAt = now - dayMs / 2;
  let archive = {
    ...made,
    spec: { ...made.spec, log },
    status: { ...made.status, log: [range(1, 1), range(2, 98)], lastAutomatedAt },
  };
  const completed = (backupId: string, at: number) => {
    const backup = newBackupObject(backupId, organizationId, request, at);
    const status = { ...backup.status, state: "completed", startedAt: at, finishedAt: at, restoresTo: at } as const;
    return { ...backup, status };
  };
  const all = new Map(
    [completed("old", dayMs), completed("new", lastAutomatedAt)].map((each) => [each.metadata.id, each]),
  );
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const report = create(ArchiveObservationSchema, {
    archiveId: "a-1",
    state: "following",
    durableTime: timestampFromMs(now),
    term: 2n,
    firstSequence: 1n,
    lastSequence: 3n,
  });
  const unit = {
    onlyWhile: () => undefined,
    update: (kind: unknown, _: unknown, object: unknown) => {
      if (kind === archiveKind) archive = object as typeof archive;
      else all.set((object as BackupObject).metadata.id, object as ReturnType<typeof completed>);
    },
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  let isPaused = true;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      services: { get: () => stored(service) },
      archives: { get: () => stored(archive), reached },
      backups: { get: (backupId: string) => stored(all.get(backupId)), reached },
      backupKeys: { get: () => stored(key), reached },
      index: { of: () => [...all.values()].map(stored) },
      fleet: { observation: () => ({ instance: { archive: report } }) },
      objects,
      readersOf: () => [],
      expiryDeferred: () => isPaused,
      begin: () => unit,
      newId: uuidv7,
      sealer,
      clock: { ...systemClock, now: () => now },
      log: silentLog,
    }),
  );
  const ended = () => [...all.values()].filter(({ metadata }) => metadata.deletionRequestedAt !== undefined);
  const untilIdle = async () => {
    for (;;) {
      const outcome = await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
      if (outcome.done || outcome.afterMs > 0) return outcome;
    }
  };
  const objectsOfLog = async () => (await objects.list(logsPrefix(id), { limit: 100 })).objects.length;
  async function* one() {
    yield Buffer.from("log");
  }
  try {
    for (const [term, sequence] of [
      [1, 1],
      [1, 2],
      [2, 1],
      [2, 2],
      [2, 3],
    ] as const)
      await objects.put(logObject({ service: id, term }, sequence), one());
    await untilIdle();
    expect(archive.status.log).toMatchObject([{ term: 1 }, { term: 2, lastSequence: 3, toTime: now }]);
    expect(ended()).toEqual([]);
    expect(await objectsOfLog()).toBe(5);
    isPaused = false;
    await untilIdle();
    expect(archive.status.log).toMatchObject([{ term: 2, lastSequence: 3 }]);
    expect(ended().map(({ metadata }) => metadata.id)).toEqual(["old"]);
    expect(await objectsOfLog()).toBe(3);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("an upgrade ends the log's archive once it can no longer be rolled back", async () => {
  const log = { archiveId: "a-1", keyId: "k-1", keyVersion: 1, wrappedKey: "", since: 0 };
  const made = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
  let archive = { ...made, spec: { ...made.spec, log: log as typeof log | null } };
  let current = runningService({}, { version: "18", canary: { operationId: "o", generation: 1 } });
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const unit = {
    update: (_kind: unknown, _before: unknown, after: unknown) => void (archive = after as typeof archive),
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      services: { get: () => stored(current) },
      archives: { get: () => stored(archive), reached },
      backups: { reached },
      backupKeys: { get: () => undefined, reached },
      index: { of: () => [] },
      fleet: { observation: () => undefined },
      readersOf: () => [],
      expiryDeferred: () => true,
      begin: () => unit,
      clock: systemClock,
      log: silentLog,
    }),
  );
  await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
  expect(archive.spec).toMatchObject({ log, source: { version: "17" } });
  current = runningService({}, { version: "18" });
  await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
  expect(archive.spec).toMatchObject({ log: null, source: { version: "18" } });
  expect(archive.status.imageChangedAt).toBeGreaterThan(0);
});

test("a manual backup before the first automated one starts the log", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-request-"));
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const key = newBackupKey(id, organizationId, sealer, 0);
  const made = newBackupObject("b-1", organizationId, { ...request, backupType: "manual", trigger: "request" }, 0);
  let archive = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const unit = {
    update: (kind: unknown, _: unknown, object: unknown) => {
      if (kind === archiveKind) archive = object as typeof archive;
    },
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      services: { get: () => stored(service) },
      archives: { get: () => stored(archive), reached },
      backups: { reached },
      backupKeys: { get: () => stored(key), reached },
      index: { of: () => [stored(made)] },
      fleet: { observation: () => undefined },
      objects: createDirectoryStore(directory),
      begin: () => unit,
      newId: uuidv7,
      sealer,
      clock: systemClock,
      log: silentLog,
    }),
  );
  try {
    await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
    expect(archive.spec.log).toMatchObject({ keyVersion: 1 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
