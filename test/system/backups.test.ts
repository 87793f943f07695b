import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { provisioningSteps } from "@holdfast/testing/api/provisioning-steps.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { leaveInvalid } from "@holdfast/testing/engines/invalid-database.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { writeRowsUntilEnd } from "@holdfast/testing/platform/writes-until-end.ts";
import { type BackupJson, createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

describe("backups of a service", () => {
  const fixture = createBackupsUnderTest();
  const { holdfast, pathOf, read, sql, digest, takeBackup, created, createdInSteps, window } = fixture;
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  let first: BackupJson;
  beforeAll(async () => {
    await fixture.start();
    ({ platform, services, source } = fixture);
  }, longMs);
  afterAll(fixture.remove, longMs);

  async function ended(id: string): Promise<BackupJson> {
    const check = async () => {
      const backup = await read(id);
      return ["completed", "failed"].includes(backup.status) ? backup : undefined;
    };
    const describe = () => services.describe(source.service.id);
    return waitUntil(`the backup ${id} has ended`, check, { withinMs: longMs, everyMs: 100, describe });
  }

  it(
    "a manual backup is completed, and encrypted",
    async () => {
      await fixture.writeRows();
      const client = await openPostgresql(platform, source.connection, { password: source.password });
      await leaveInvalid(client, "halfway");
      // Backups of services that began before new ones had this database lack it.
      await client.query("DROP DATABASE postgres");
      await client.end();
      first = await takeBackup();
      expect(first).toMatchObject({ status: "completed", error_message: null, key_version: 1 });
      expect(first.size_bytes).toBeGreaterThan(100_000);
      const { backups } = (await services.get(source.service.id)) as {
        backups: { last_completed_at: string };
      } & ServiceJson;
      expect(backups.last_completed_at).not.toBeNull();
    },
    longMs,
  );

  it(
    "restored and forked services have rows that were deleted since, and passwords of their own",
    async () => {
      const before = await digest(source);
      await sql(source, "DELETE FROM kept WHERE i % 2 = 0");
      const after = await digest(source);
      const [copy, fork] = await Promise.all([
        createdInSteps(`services restore orders --name orders-before --backup ${first.id}`),
        createdInSteps("services fork orders orders-fork"),
      ]);
      for (const { steps } of [copy, fork]) {
        expect(steps).toContain("ProvisioningRestore");
        expect(steps).toEqual(provisioningSteps.filter((step) => steps.includes(step)));
      }
      expect(await digest(source)).toEqual(after);
      for (const restored of [copy, fork]) {
        expect(restored.service).toMatchObject({ database_type: "postgresql", allowed_cidrs: ["127.0.0.0/8"] });
        expect(restored.service.hostname).not.toBe(source.service.hostname);
        expect(await digest(restored)).toEqual(before);
        const path = `/managed-services/${restored.service.id}/events?type=service.restored`;
        // The store has an event together with its change; the outbox then copies it into the history.
        const events = await waitUntil("its restore has an event", async () => {
          const response = await platform.rest.get<{ events: { data: object }[] }>(path);
          return expectStatus(response, 200).json.events.length > 0 && response.json.events;
        });
        expect(events).toMatchObject([{ data: { source_service_id: source.service.id } }]);
        expect((await sql(restored, "SHOW work_mem"))[0]).toEqual({ work_mem: "5MB" });
        expect(restored.password).not.toBe(source.password);
        await expect(sql(restored, "SELECT 1", source.password)).rejects.toThrow(/authentication failed/);
        const creation = (await services.operations(restored.service.id)).find(({ type }) => type === "create");
        expect(creation).toMatchObject({
          status: "completed",
          warnings: [expect.stringContaining("halfway is invalid")],
        });
        const reader = { ...restored.connection, user: "made_in_sql" };
        await expect(openPostgresql(platform, reader, { password: "known to the source" })).rejects.toThrow(
          /authentication failed/,
        );
      }
      const databases = `/managed-services/${copy.service.id}/databases`;
      const listed = expectStatus(await platform.rest.get<{ databases: object[] }>(databases), 200).json.databases;
      expect(listed).toContainEqual(expect.objectContaining({ name: "halfway", state: "invalid" }));
      expect(listed).not.toContainEqual(expect.objectContaining({ name: "postgres" }));
      expectStatus(await platform.rest.post(databases, { name: "postgres" }), 201);
      const ofDatabases = async () => {
        const path = `/managed-services/${copy.service.id}/health`;
        const health = expectStatus(await platform.rest.get<{ checks: { name: string; status: string }[] }>(path), 200);
        return health.json.checks.find(({ name }) => name === "databases")?.status;
      };
      expect(await ofDatabases()).toBe("degraded");
      expectStatus(await platform.rest.delete(`${databases}/halfway`), 204);
      await waitUntil("the copy is healthy", async () => (await ofDatabases()) === "healthy");
      const deletion = await platform.rest.delete(`/managed-services/${fork.service.id}?skip_final_backup=true`);
      expectStatus(deletion, 202);
      await services.deleted(fork.service.id);
      expect((await platform.rest.post(`/managed-services/${fork.service.id}/undelete`)).status).toBe(404);
    },
    longMs,
  );

  it("a backup is fully verified, also after its key was rotated", async () => {
    expect(await holdfast("backups rotate-key orders")).toMatchObject({ key_version: 2 });
    const verified = await holdfast<BackupJson>(`backups verify orders ${first.id} --wait`);
    expect(verified.verified_at).not.toBeNull();
    const operations = await services.operations(source.service.id);
    expect(operations).toContainEqual(expect.objectContaining({ type: "verify_backup", status: "completed" }));
  });

  it("reports why it cannot", async () => {
    const { id } = source.service;
    const { rest } = platform;
    const nowhere = pathOf(id, `/${id}`);
    const target = { target_service_name: "orders" };
    const future = { restore_point: "2100-01-01T00:00:00Z", target_service_name: "x" };
    const wrong = { backup_type: "automated" };
    const settings = `/managed-services/${id}/backup-settings`;
    const automated = await waitUntil("an automated backup exists", async () => {
      const { json } = await rest.get<{ backups: BackupJson[] }>(pathOf(id, "?type=automated&limit=1"));
      return json.backups[0]?.id;
    });
    const refused: readonly (readonly [{ status: number; json: unknown }, number, string])[] = [
      [await rest.get(nowhere), 404, "backup_not_found"],
      [await rest.post(pathOf(id), wrong), 400, "invalid_request"],
      [await rest.delete(pathOf(id, `/${automated}`)), 409, "wrong_state"],
      [await rest.patch(settings, { retention_days: 31 }), 400, "invalid_request"],
      [await rest.patch(settings, { hour: 24 }), 400, "invalid_request"],
      [await rest.post(pathOf(id, `/${first.id}/cancel`)), 409, "wrong_state"],
      [await rest.post(pathOf(id, `/${first.id}/restore`), target), 409, "name_taken"],
      [await rest.post(pathOf(id, `/${first.id}/restore`), { ...target, storage_size_gb: 0 }), 400, "invalid_request"],
      [await rest.post(pathOf(id, `/${first.id}/restore`), { ...target, name: "orders" }), 400, "invalid_request"],
      [await rest.post(pathOf(id, `/${first.id}/restore`), {}), 400, "invalid_request"],
      [await rest.post(pathOf(id, "/restore"), future), 422, "restore_point_unavailable"],
      [
        await rest.post(pathOf(id, "/restore"), { ...future, restore_point: "2026-01-01T00:00:00" }),
        400,
        "invalid_request",
      ],
      [await rest.post(`/managed-services/${id}/undelete`), 409, "wrong_state"],
    ];
    for (const [response, status, code] of refused) expect(response).toMatchObject({ status, json: { code } });
  });

  it("retains the chosen settings", async () => {
    const chosen = { hour: 4, minute: 5, retention_days: 30 };
    expect(await holdfast("backups settings orders --hour 4 --minute 5 --retention-days 30")).toMatchObject(chosen);
    expect(await holdfast("backups settings orders --retention-days 7")).toMatchObject({
      ...chosen,
      retention_days: 7,
    });
    expect(await holdfast("backups settings orders")).toMatchObject({ hour: 4, minute: 5, retention_days: 7 });
  });

  it(
    "a canceled one has failed, and does not affect completed ones",
    async () => {
      const requested = expectStatus(await platform.rest.post<BackupJson>(pathOf(source.service.id)), 202).json;
      expectStatus(await platform.rest.post(pathOf(source.service.id, `/${requested.id}/cancel`)), 202);
      expect(await ended(requested.id)).toMatchObject({
        status: "failed",
        error_message: expect.stringContaining("canceled"),
      });
      expect(await read(first.id)).toMatchObject({ status: "completed" });
    },
    longMs,
  );

  it("a deleted manual backup is removed with its bytes", async () => {
    await fixture.run("backups", "delete", "orders", first.id, "--yes");
    expect((await platform.rest.get(pathOf(source.service.id, `/${first.id}`))).status).toBe(404);
  });

  it(
    "the window moves past the last write although there are no more writes",
    async () => {
      await fixture.untilRestorable();
      await sql(source, "CREATE TABLE bursts (i int PRIMARY KEY)");
      for (let i = 0; i < 3; i += 1) {
        const insert = `INSERT INTO bursts SELECT i FROM generate_series(${i * 40}, ${i * 40 + 39}) AS i`;
        await sql(source, insert);
        const lastAt = new Date().toISOString();
        // The promise of docs/how-to/backups.md.
        await waitUntil(
          "the last write can be restored",
          async () => ((await window())?.restorable?.to ?? "") > lastAt,
          {
            withinMs: 60_000,
            everyMs: 50,
            describe: () => services.describe(source.service.id),
          },
        );
      }
    },
    3 * longMs,
  );

  it(
    "a service that is deleted during writes is restored with every acknowledged row",
    async () => {
      const { id } = source.service;
      const { acknowledged, ended: cut } = await writeRowsUntilEnd(platform, source);
      await waitUntil("rows are acknowledged", () => acknowledged.length > 100, { everyMs: 20 });
      await services.delete(id);
      await cut;
      const undeleted = await created(`services undelete ${id}`);
      const found = new Set((await sql(undeleted, "SELECT i FROM late")).map(({ i }) => i));
      expect(acknowledged.filter((i) => !found.has(i))).toEqual([]);
    },
    2 * longMs,
  );
});
