import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { ArchiveObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { uuidv7 } from "uuidv7";
import { expect, test } from "vitest";
import { askedBackup } from "../../../../test/support/controller/asked-backup.ts";
import { runningService } from "../../../../test/support/controller/service-object.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { archiveKind, newArchive } from "./archive.ts";
import type { ArchiveWorkDeps } from "./archive-deps.ts";
import { createArchiveWork } from "./archive-reconciler.ts";
import { newBackupKey, newDataKey } from "./backup-key.ts";
import { newBackup } from "./backup.ts";

const service = runningService({});
const { id, organizationId } = service.metadata;
const asked = { ...askedBackup, serviceId: id, backupType: "automated", trigger: "schedule" } as const;

test("a service that comes back while its archive is looked at keeps its automated backups", async () => {
  const made = newBackup("b-1", organizationId, asked, 0);
  const backup = { ...made, status: { ...made.status, state: "completed", finishedAt: 0 } } as const;
  const archive = newArchive(service, 0, 0);
  const deleted = { at: 0, until: Number.MAX_SAFE_INTEGER, backupId: "b-1", service, users: [] };
  const gone = { ...archive, status: { ...archive.status, deleted } };
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  /** It comes back in one transaction, between two looks into the store. */
  let looks = 0;
  const isBack = () => (looks += 1) > 1;
  const removed: string[] = [];
  const unit = {
    onlyWhile: () => undefined,
    update: (_: unknown, { object }: { object: { metadata: { id: string } } }) => removed.push(object.metadata.id),
    commit: async () => 2n,
  };
  const work = createArchiveWork({
    services: { get: () => undefined, fresh: async () => (isBack() ? stored(service) : undefined) },
    archives: { get: () => stored(gone), fresh: async () => stored(isBack() ? archive : gone) },
    backups: { get: () => stored(backup), reached: async () => undefined },
    index: { of: () => [stored(backup)] },
    organizations: { get: () => stored({}) },
    readersOf: () => [],
    held: () => false,
    begin: () => unit,
    clock: systemClock,
    log: silentLog,
  } as unknown as ArchiveWorkDeps);
  await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
  expect(removed).toEqual([]);
});

test("a log with a gap goes on as another archive, which is told once", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-gap-"));
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const key = newBackupKey(id, organizationId, sealer, 0);
  const log = { archiveId: "a-1", keyId: "k-1", ...newDataKey(key, "k-1", sealer), since: 0 };
  const made = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
  let archive = { ...made, spec: { ...made.spec, log } };
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const durableTime = timestampFromMs(1_000);
  const told = create(ArchiveObservationSchema, { archiveId: "a-1", state: "gap", durableTime, term: 1n });
  const events: { type: string; data: object }[] = [];
  const unit = {
    update: (kind: unknown, _: unknown, object: typeof archive) => {
      if (kind === archiveKind) archive = object;
    },
    event: (event: { type: string; data: object }) => events.push(event),
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  const work = createArchiveWork({
    services: { get: () => stored(service) },
    archives: { get: () => stored(archive), reached },
    backups: { reached },
    backupKeys: { get: () => stored(key), reached },
    index: { of: () => [] },
    fleet: { observation: () => ({ instance: { archive: told } }) },
    objects: createDirectoryStore(directory),
    readersOf: () => [],
    held: () => false,
    begin: () => unit,
    newId: uuidv7,
    sealer,
    clock: systemClock,
    log: silentLog,
  } as unknown as ArchiveWorkDeps);
  try {
    await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
    expect(archive.spec.log?.archiveId).not.toBe("a-1");
    // What the machine tells is of the archive of before by now.
    await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
    expect(events).toMatchObject([{ type: "backup.gap", data: { service_id: id } }]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("the archive of a service whose data are upgraded ends when that cannot be rolled back any more", async () => {
  const log = { archiveId: "a-1", keyId: "k-1", keyVersion: 1, wrappedKey: "", since: 0 };
  const made = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
  let archive = { ...made, spec: { ...made.spec, log: log as typeof log | null } };
  let current = runningService({}, { version: "18", trial: { operationId: "o", generation: 1 } });
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const unit = {
    update: (_kind: unknown, _before: unknown, after: typeof archive) => void (archive = after),
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  const work = createArchiveWork({
    services: { get: () => stored(current) },
    archives: { get: () => stored(archive), reached },
    backups: { reached },
    backupKeys: { get: () => undefined, reached },
    index: { of: () => [] },
    fleet: { observation: () => undefined },
    readersOf: () => [],
    held: () => true,
    begin: () => unit,
    clock: systemClock,
    log: silentLog,
  } as unknown as ArchiveWorkDeps);
  await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
  expect(archive.spec).toMatchObject({ log, source: { version: "17" } });
  current = runningService({}, { version: "18" });
  await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
  expect(archive.spec).toMatchObject({ log: null, source: { version: "18" } });
  expect(archive.status.imageChangedAt).toBeGreaterThan(0);
});

test("the log is begun for a backup that a user asks for before the first one is due", async () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-request-"));
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const key = newBackupKey(id, organizationId, sealer, 0);
  const made = newBackup("b-1", organizationId, { ...asked, backupType: "manual", trigger: "request" }, 0);
  let archive = newArchive(service, Number.MAX_SAFE_INTEGER, 0);
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const unit = {
    update: (kind: unknown, _: unknown, object: typeof archive) => {
      if (kind === archiveKind) archive = object;
    },
    commit: async () => 2n,
  };
  const reached = async () => undefined;
  const work = createArchiveWork({
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
  } as unknown as ArchiveWorkDeps);
  try {
    await work.reconciler.reconcile(id, AbortSignal.timeout(60_000));
    expect(archive.spec.log).toMatchObject({ keyVersion: 1 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
