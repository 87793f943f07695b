import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { s3Programs } from "@holdfast/testing/servers/s3-program.ts";
import { type S3Server, startS3Server } from "@holdfast/testing/servers/s3-server.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly error_message: string | null;
}

const longMs = 180_000;
const servers = await s3Programs();

/** One PostgreSQL of an installation whose objects are all in a real S3 server. */
describe.each(servers)("backups in a bucket of $title", (program) => {
  let server: S3Server;
  let platform: Platform;
  let services: Services;
  let source: RunningService;

  beforeAll(async () => {
    if (program.path === undefined) return;
    server = await startS3Server(program);
    platform = await startPlatform({
      flags: ["--objects", server.url("holdfast"), "--objects-key", server.keyFile],
      environment: {
        HOLDFAST_OBJECTS_CA: server.caFile,
        HOLDFAST_OBJECTS_ENCRYPTION: "none",
        HOLDFAST_FIRST_BACKUP_AFTER_S: "1",
        HOLDFAST_IDLE_LOG_AFTER_S: "3",
      },
    });
    services = createServices(platform);
    source = await services.createRunning("orders", { allowed_cidrs: ["127.0.0.0/8"] });
  }, longMs);
  afterAll(async () => {
    await platform?.remove();
    await server?.remove();
  }, longMs);

  const it = test.skipIf(program.path === undefined);
  const path = (rest = "") => `/managed-services/${source.service.id}/backups${rest}`;
  const query = <Row extends object>({ connection, password }: RunningService, sql: string) =>
    queryOnce<Row>(platform, connection, { password }, sql);
  const wait = { withinMs: longMs, everyMs: 100, describe: () => services.describe(source.service.id) };
  const restorable = async () => (await services.get(source.service.id)).backups?.restorable ?? null;

  async function takeBackup(): Promise<BackupJson> {
    return ended(expectStatus(await platform.rest.post<BackupJson>(path()), 202).json.id);
  }

  async function ended(id: string): Promise<BackupJson> {
    const check = async () => {
      const { json } = await platform.rest.get<BackupJson>(path(`/${id}`));
      return ["completed", "failed"].includes(json.status) ? json : undefined;
    };
    return waitUntil("the backup has ended", check, wait);
  }
  async function restored(body: Record<string, unknown>, from = ""): Promise<RunningService> {
    const { id } = expectStatus(await platform.rest.post<ServiceJson>(path(`${from}/restore`), body), 202).json;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  it(
    "are stored there, and restored from there, by id and to a second",
    async () => {
      await query(source, "CREATE TABLE kept AS SELECT i FROM generate_series(1, 5000) AS i");
      const backup = await takeBackup();
      expect(backup).toMatchObject({ status: "completed", error_message: null });
      await waitUntil("the log continues from a base", async () => (await restorable()) !== null, wait);
      await query(source, "DELETE FROM kept WHERE i > 4000");
      const point = new Date(await reserveMillisecond()).toISOString();
      await query(source, "DELETE FROM kept");
      await waitUntil("the log is stored", async () => ((await restorable())?.to ?? "") > point, wait);
      const target = { target_service_name: "orders-whole" };
      const [complete, earlier] = await Promise.all([
        restored(target, `/${backup.id}`),
        restored({ restore_point: point, target_service_name: "orders-then" }),
      ]);
      const count = "SELECT count(*)::int AS count FROM kept";
      expect(await query(complete, count)).toEqual([{ count: 5_000 }]);
      expect(await query(earlier, count)).toEqual([{ count: 4_000 }]);
    },
    longMs,
  );

  it(
    "wait for an unavailable store, and the log has no gap afterwards",
    async () => {
      await server.kill();
      await query(source, "INSERT INTO kept SELECT i FROM generate_series(1, 100) AS i");
      const written = new Date().toISOString();
      const requested = expectStatus(await platform.rest.post<BackupJson>(path()), 202).json;
      await server.start();
      expect(await ended(requested.id)).toMatchObject({ status: "completed" });
      await waitUntil(
        "the log until the last row is restorable",
        async () => ((await restorable())?.to ?? "") > written,
        wait,
      );
      expect((await services.get(source.service.id)).backups?.gaps).toEqual([]);
    },
    longMs,
  );
});
