import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { systemClock } from "@holdfast/common/clock.ts";
import { newLogSecrets, sealLog } from "@holdfast/common/backup/log-object.ts";
import { logObject, logsPrefix, manifestObject } from "@holdfast/common/backup/object-names.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { ArchiveObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { archiveKind, type LogRange, newArchive } from "./archive.ts";
import type { ArchiveWorkDeps } from "./archive-deps.ts";
import { createArchiveWork } from "./archive-reconciler.ts";
import { newBackupKey, newDataKey, openDataKey } from "../backup-key.ts";
import { backupKind, type BackupObject, newBackupObject } from "../backup.ts";
import { restorableOf } from "../restore/restorable.ts";
import { taskTarget } from "../../service/member/member-roles.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { defaultCatalog } from "#catalog/catalog.ts";

const service = runningService({});
const { id, organizationId } = service.metadata;
/** No drill found damage. */
const noReports = { drillIndex: { of: () => [] } };
const request = { ...requestedBackup, serviceId: id, backupType: "automated", trigger: "schedule" } as const;

test("a service that is undeleted during a reconcile of its archive keeps its automated backups", async () => {
  const made = newBackupObject("b-1", organizationId, request, 0);
  const backup = { ...made, status: { ...made.status, state: "completed", finishedAt: 0 } } as const;
  const archive = newArchive(service, 0, 0);
  const deleted = { at: 0, until: Number.MAX_SAFE_INTEGER, backupId: "b-1", service, users: [] };
  const withDeletion = { ...archive, status: { ...archive.status, deleted } };
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
      catalog: defaultCatalog,
      ...noReports,
      services: {
        by: () => [],
        get: () => undefined,
        getCurrent: async () => (isBack() ? stored(service) : undefined),
      },
      archives: { get: () => stored(withDeletion), getCurrent: async () => stored(isBack() ? archive : withDeletion) },
      backups: { get: () => stored(backup), untilRevision: async () => undefined },
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
  const untilRevision = async () => undefined;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      catalog: defaultCatalog,
      ...noReports,
      services: { by: () => [], get: () => stored(service) },
      archives: { get: () => stored(archive), untilRevision },
      backups: { untilRevision },
      backupKeys: { get: () => stored(key), untilRevision },
      index: { of: () => [] },
      fleet: { observation: () => ({ instance: { archive: report, effectiveParameters: {} } }) },
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
    // The log that the machine had stored by then, which ends the window too.
    const since = "1970-01-01T00:00:01.000Z";
    expect(events).toMatchObject([{ type: "backup.gap", data: { service_id: id, since } }]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a pause of deletions retains expired backups and log, and new log is still recorded", async () => {
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
  const untilRevision = async () => undefined;
  let isPaused = true;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      catalog: defaultCatalog,
      ...noReports,
      services: { by: () => [], get: () => stored(service) },
      archives: { get: () => stored(archive), untilRevision },
      backups: { get: (backupId: string) => stored(all.get(backupId)), untilRevision },
      backupKeys: { get: () => stored(key), untilRevision },
      index: { of: () => [...all.values()].map(stored) },
      fleet: { observation: () => ({ instance: { archive: report, effectiveParameters: {} } }) },
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
  const untilRevision = async () => undefined;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      catalog: defaultCatalog,
      ...noReports,
      services: { by: () => [], get: () => stored(current) },
      archives: { get: () => stored(archive), untilRevision },
      backups: { untilRevision },
      backupKeys: { get: () => undefined, untilRevision },
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
  const untilRevision = async () => undefined;
  const work = createArchiveWork(
    partial<ArchiveWorkDeps>({
      catalog: defaultCatalog,
      ...noReports,
      services: { by: () => [], get: () => stored(service) },
      archives: { get: () => stored(archive), untilRevision },
      backups: { untilRevision },
      backupKeys: { get: () => stored(key), untilRevision },
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

describe("an object that a machine reports as damaged", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-damage-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const key = newBackupKey(id, organizationId, sealer, 0);
  const dataKey = { keyId: "k-1", ...newDataKey(key, "k-1", sealer) };
  const secret = { id: "k-1", secret: openDataKey(key, { id: "k-1", ...dataKey }, sealer) };
  const objects = createDirectoryStore(directory);
  const location = { service: id, term: 1 };
  const now = 1_000_000;
  const keys = [dataKey];
  const range = { archiveId: "a-1", term: 1, firstSequence: 1, lastSequence: 4, keys, checkpoints: [] };
  const stored = <T>(object: T) => ({ object, modRevision: 1n });

  beforeAll(async () => {
    for (const sequence of [1, 3, 4]) {
      const time = new Date(sequence * 1_000).toISOString();
      const header = { ...location, sequence, branch: "1", from: `0/${sequence}`, to: `0/${sequence + 1}`, time };
      async function* sealed() {
        yield sealLog(Buffer.from("log"), header, secret, newLogSecrets());
      }
      await objects.put(logObject(location, sequence), sealed());
    }
  });

  /** An archive with one base, its controller, and everything that is committed. */
  function underTest(reported: { byDrill?: string; byRestore?: string }) {
    const made = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
    const log: readonly LogRange[] = [{ ...range, fromTime: 500, toTime: 4_000 }];
    let archive = {
      ...made,
      spec: { ...made.spec, log: { archiveId: "a-1", ...dataKey, since: 0 } },
      status: { ...made.status, log, lastAutomatedAt: 600 },
    };
    const fresh = newBackupObject("b-1", organizationId, request, 600);
    const status = { ...fresh.status, state: "completed", startedAt: 600, finishedAt: 700, restoresTo: 700 } as const;
    const backups = new Map<string, BackupObject>([["b-1", { ...fresh, status }]]);
    const events: { type: string; data: Record<string, unknown> }[] = [];
    const created: string[] = [];
    const unit = {
      onlyWhile: () => undefined,
      update: (kind: unknown, _: unknown, object: { metadata: { id: string } }) => {
        if (kind === archiveKind) archive = object as typeof archive;
        if (kind === backupKind) backups.set(object.metadata.id, object as BackupObject);
      },
      create: (kind: { name: string }, object: { metadata: { id: string } }) => {
        created.push(kind.name);
        if (kind.name === "backup") backups.set(object.metadata.id, object as BackupObject);
      },
      event: (event: (typeof events)[number]) => events.push(event),
      commit: async () => 2n,
    };
    const origin = { kind: "restore", restoreId: "r-1", serviceId: id, backupId: "b-1", targetTime: 3_000 } as const;
    const restoring = runningService({ id: "restoring" }, { origin: { ...origin, finishedAt: null } });
    const following = { archiveId: "a-1", state: "following", durableTime: timestampFromMs(4_000) };
    const report = create(ArchiveObservationSchema, { ...following, term: 1n, firstSequence: 1n, lastSequence: 4n });
    const untilRevision = async () => undefined;
    const work = createArchiveWork(
      partial<ArchiveWorkDeps>({
        catalog: defaultCatalog,
        services: {
          by: (_: unknown, source: string) => (source === id ? [stored(restoring)] : []),
          get: () => stored(service),
          untilRevision,
        },
        drillIndex: {
          of: () => [{ metadata: fresh.metadata, status: { damagedObject: reported.byDrill, finishedAt: 800 } }],
        },
        archives: { get: () => stored(archive), untilRevision },
        backups: { get: (backupId: string) => stored(backups.get(backupId)), untilRevision },
        backupKeys: { get: () => stored(key), untilRevision },
        index: {
          of: () => [...backups.values()].map(stored),
          get: (backupId: string) => stored(backups.get(backupId)),
        },
        fleet: {
          observation: (machine: string) =>
            machine === taskTarget(restoring).id
              ? {
                  instance: {
                    restore: { restoreId: "r-1", damagedObject: reported.byRestore ?? "" },
                    effectiveParameters: {},
                  },
                }
              : { instance: { archive: report, effectiveParameters: {} } },
        },
        objects,
        readersOf: () => [],
        expiryDeferred: () => true,
        begin: () => unit,
        newId: uuidv7,
        sealer,
        clock: { ...systemClock, now: () => now },
        log: silentLog,
      }),
    );
    return {
      events,
      created,
      backups: () => [...backups.values()],
      window: () => restorableOf("postgresql", archive, [...backups.values()]),
      async untilIdle() {
        for (;;) {
          const outcome = await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
          if (outcome.done || outcome.afterMs > 0) return;
        }
      },
    };
  }

  test.each(["byDrill", "byRestore"] as const)(
    "lost log, %s: a gap, one event and a new base immediately",
    async (by) => {
      const { events, backups, window, untilIdle } = underTest({ [by]: logObject(location, 2) });
      expect(window().span).toEqual({ from: 700, to: 4_000 });
      await untilIdle();
      await untilIdle();
      const since = "1970-01-01T00:00:01.000Z";
      const message = expect.stringContaining(`lost or damaged. Restore to ${since} or earlier`) as unknown;
      expect(events).toMatchObject([{ type: "backup.gap", data: { service_id: id, since, message } }]);
      expect(backups().map(({ spec }) => spec.trigger)).toEqual([request.trigger, "gap"]);
      expect(window().span).toEqual({ from: 700, to: Date.parse(since) });
    },
  );

  test("log that opens, of another service, or beyond the ranges, changes nothing", async () => {
    for (const byDrill of [
      logObject(location, 3),
      logObject({ service: "other", term: 1 }, 2),
      logObject(location, 9),
    ]) {
      const { events, backups, window, untilIdle } = underTest({ byDrill });
      await untilIdle();
      expect([events, backups().length]).toEqual([[], 1]);
      expect(window().span).toEqual({ from: 700, to: 4_000 });
    }
  });

  test("a part of a backup: the backup is verified once", async () => {
    const { created, backups, untilIdle } = underTest({
      byDrill: manifestObject({ service: id, backup: "b-1", attempt: 1 }),
    });
    await untilIdle();
    await untilIdle();
    expect(created).toEqual(["operation"]);
    expect(backups().map(({ spec }) => spec.verification)).toEqual([expect.any(String)]);
  });
});
