import { randomBytes } from "node:crypto";
import { partObject } from "@holdfast/common/backup/object-names.ts";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { type ArchiveObject, newArchive } from "@holdfast/controller/services/backup/archive/archive.ts";
import {
  type BackupAdminApiDeps,
  createBackupAdminApi,
} from "@holdfast/controller/services/backup/backup-admin-api.ts";
import { type BackupObject, type BackupStatus, newBackupObject } from "@holdfast/controller/services/backup/backup.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { CommandLine } from "@holdfast/testing/platform/command-line.ts";
import { createOperatorCommandLine } from "@holdfast/testing/platform/operator-command-line.ts";
import { partial } from "@holdfast/testing/partial.ts";

const dayMs = 86_400_000;
const service = runningService();
const { id, organizationId } = service.metadata;

function backup(name: string, status: Partial<BackupStatus>): BackupObject {
  const request = { serviceId: id, databaseType: "postgresql", version: "17", operationId: "op", wrappedKey: "" };
  const created = newBackupObject(
    name,
    organizationId,
    { ...request, backupType: "automated", kind: "full", trigger: "schedule", keyVersion: 1 },
    0,
  );
  return { ...created, status: { ...created.status, ...status } };
}

function completed(name: string, day: number): BackupObject {
  const at = day * dayMs;
  const times = { startedAt: at, finishedAt: at, restoresTo: at };
  return backup(name, { state: "completed", attempt: 1, sizeBytes: 5_000, ...times });
}

function archive(): ArchiveObject {
  const created = newArchive(service, 0, 0);
  const range = { archiveId: "a-1", firstSequence: 1, lastSequence: 10, keys: [], checkpoints: [] };
  const log = [
    { ...range, term: 1, fromTime: 0, toTime: dayMs - 1 },
    { ...range, term: 2, fromTime: dayMs, toTime: 2 * dayMs, continues: true },
  ];
  const current = { archiveId: "a-1", keyId: "k-1", keyVersion: 1, wrappedKey: "", since: 0 };
  return { ...created, spec: { ...created.spec, log: current }, status: { ...created.status, log } };
}

const backups = [
  completed("b-1", 0),
  // Later than the start of the term by more than clocks may differ.
  completed("b-2", 1.01),
  backup("b-3", { state: "running", attempt: 2, machineId: "m-1", startedAt: 2 * dayMs }),
  backup("b-4", { state: "pending" }),
  backup("b-5", { state: "failed", attempt: 1, finishedAt: 2 * dayMs, isClear: true }),
];
/** Parts of an abandoned attempt, and parts of the current attempt. */
const parts = [1, 2].map((attempt) => partObject({ service: id, backup: "b-3", attempt }, "files", 1));

function collection<R>(objects: readonly R[]) {
  const stored = objects.map((object) => ({ object, modRevision: 1n }));
  const page = (accepts: (object: R) => boolean) => ({ items: stored.filter(({ object }) => accepts(object)) });
  return { page, values: () => stored };
}

describe("archives as operators see them", () => {
  const retained = archive();
  const state = { isDeferred: false, isRestored: false };
  const api = createBackupAdminApi(
    partial<BackupAdminApiDeps>({
      archives: collection([retained]),
      backups: collection(backups),
      services: { get: () => ({ object: service }) },
      index: { of: () => backups.map((object) => ({ object })) },
      liveArchive: (serviceId: string) => (serviceId === id ? retained : undefined),
      readersOf: (name: string) => (state.isRestored && name === "b-1" ? ["a service"] : []),
      expiryDeferred: () => state.isDeferred,
      objects: {
        list: async (prefix: string) => ({
          objects: parts.filter((key) => key.startsWith(prefix)).map((key) => ({ key, sizeBytes: 100 })),
          more: false,
        }),
      },
      cursors: createCursors(createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) })),
      clock: { now: () => 2 * dayMs },
    }),
  );
  let gateway: TestGateway;
  let shell: CommandLine;
  beforeAll(async () => {
    gateway = await startTestGateway([api]);
    shell = createOperatorCommandLine(gateway);
  });
  afterAll(async () => {
    shell?.remove();
    await gateway?.close();
  });

  async function listed(...words: string[]): Promise<unknown> {
    const { code, stdout, stderr } = await shell.runHere(["--output", "json", "admin", "archives", ...words]);
    expect([code, stderr]).toEqual([0, ""]);
    return JSON.parse(stdout);
  }
  const send = (method: string, body: object) =>
    gateway.call("POST", `/holdfast.admin.v1.BackupService/${method}`, {
      body,
      headers: { "connect-protocol-version": "1" },
    });

  test("an archive shows its newest term and what can be restored", async () => {
    expect(await listed("list")).toMatchObject([
      {
        serviceId: id,
        engine: "postgresql",
        archiveId: "a-1",
        term: "2",
        logRanges: 2,
        backups: 2,
        restorableFrom: "1970-01-01T00:00:00Z",
        restorableTo: "1970-01-03T00:00:00Z",
      },
    ]);
  });

  test("its log has a range for each term", async () => {
    const range = { archiveId: "a-1", firstSequence: "1", lastSequence: "10" };
    expect(await listed("show", id)).toMatchObject([
      { ...range, term: "1", to: "1970-01-01T23:59:59.999Z" },
      { ...range, term: "2", from: "1970-01-02T00:00:00Z", continues: true },
    ]);
    const first = await send("ListLogRanges", { serviceId: id, page: { limit: 1 } });
    const [cursor, serviceId] = [first.json.nextCursor, id];
    const rest = await send("ListLogRanges", { serviceId, page: { limit: 1, cursor } });
    expect([first, rest].map(({ json }) => json.ranges.map(({ term }: { term: string }) => term))).toEqual([
      ["1"],
      ["2"],
    ]);
  });

  test("an unknown service has no archive, and the request must name a service", async () => {
    expect((await send("ListLogRanges", { serviceId: "unknown" })).json).toMatchObject({ code: "not_found" });
    const unnamed = await send("ListLogRanges", {});
    expect(unnamed.status).toBe(400);
    expect(unnamed.text).toContain("service_id");
  });

  test("an upload is a backup that has started and not ended, with the objects of all its attempts", async () => {
    expect(await listed("uploads")).toMatchObject([
      { backupId: "b-3", status: "running", attempt: 2, machineId: "m-1", objects: "2", sizeBytes: "200" },
    ]);
  });

  test("expiry is evaluated now or at a future time, and names the reasons for waiting", async () => {
    const at = ["--at", "1970-01-08T00:00:00Z"];
    const log = { kind: "log", id: "a-1", term: "1", objects: "10" };
    expect(await listed("expiry")).toEqual([]);
    expect(await listed("expiry", ...at)).toMatchObject([{ kind: "backup", id: "b-1", sizeBytes: "5000" }, log]);
    state.isDeferred = true;
    expect(await listed("expiry", ...at)).toMatchObject([
      { id: "b-1", waitsFor: "hold" },
      { ...log, waitsFor: "hold" },
    ]);
    state.isRestored = true;
    expect(await listed("expiry", ...at)).toMatchObject([{ id: "b-1", waitsFor: "restore" }]);
  });
});
