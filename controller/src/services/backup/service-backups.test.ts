import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ArchiveObject, newArchive } from "./archive/archive.ts";
import { type BackupObject, newBackupObject } from "./backup.ts";
import { createServiceBackups } from "./service-backups.ts";

const request = {
  serviceId: "service-1",
  databaseType: "postgresql",
  version: "17",
  backupType: "automated",
  kind: "full",
  trigger: "final",
  operationId: "op",
  keyVersion: 1,
  wrappedKey: "",
} as const;
const made = newBackupObject("b-1", "org", request, 0);
const final = (state: BackupObject["status"]["state"]) => ({ ...made, status: { ...made.status, state } });
const unfinished = {
  origin: {
    kind: "undelete",
    restoreId: "r",
    serviceId: "service-1",
    backupId: "b",
    targetTime: null,
    finishedAt: null,
  },
} as const;

function keeps(
  spec: Partial<ManagedServiceObject["spec"]>,
  backups: readonly BackupObject[],
  hasArchive = true,
): boolean {
  const service = runningService({}, spec, { observedGeneration: 1 });
  const deleted = { ...service, metadata: { ...service.metadata, deletionRequestedAt: 1 } };
  const archive: ArchiveObject | undefined = hasArchive ? newArchive(service, 0, 0) : undefined;
  const stored = <T>(object: T) => ({ object, modRevision: 1n });
  const index = { of: () => backups.map(stored), open: () => [], get: () => undefined };
  const archives = { get: () => archive && stored(archive) };
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const nothing = { get: () => undefined };
  const known = createServiceBackups({
    archives,
    backupKeys: nothing,
    liveArchive: () => archive,
    index,
    idleLogDelayMs: 55_000,
    finalBackupTimeoutMs: 30 * 60_000,
    sealer,
    clock: systemClock,
  });
  return known.retainsDisks(deleted);
}

test.each([
  ["was not running", {}, [], true, true],
  ["has its final backup", { finalBackup: "wanted" }, [final("completed")], true, false],
  ["could not be backed up", { finalBackup: "wanted" }, [final("failed")], true, true],
  ["is deleted permanently", { finalBackup: "skipped" }, [], true, false],
  ["never was running", {}, [], false, false],
  ["is files, which have no backups", { databaseType: "files" }, [], false, true],
  ["has an unfinished restore", unfinished, [], true, false],
] as const)("the disk of a deleted service that %s is retained or not", (_, spec, backups, hasArchive, expected) => {
  expect(keeps(spec, backups, hasArchive)).toBe(expected);
});
