import { connect } from "node:net";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { drilled, noDrillMachines } from "@holdfast/testing/platform/drills.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { argumentsAndEnvironment, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { writeUntilEnd } from "@holdfast/testing/platform/writes-until-end.ts";

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly kind: string;
  readonly restores_to: string;
}

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("backups of a MySQL", () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;
  let first: BackupJson;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    shop = await services.createRunning("shop", { database_type: "mysql", allowed_cidrs: ["127.0.0.0/8"] });
    await query(shop, "CREATE TABLE versions (version VARCHAR(10))");
    await query(shop, "CREATE TABLE bulk (id INT AUTO_INCREMENT PRIMARY KEY, bytes BLOB)");
    await query(shop, "INSERT INTO bulk (bytes) VALUES (RANDOM_BYTES(1000))");
    for (let doubled = 0; doubled < 16; doubled += 1)
      await query(shop, "INSERT INTO bulk (bytes) SELECT RANDOM_BYTES(1000) FROM bulk");
    await query(shop, "CREATE EVENT hourly ON SCHEDULE EVERY 1 HOUR STARTS '2036-01-01' DO DELETE FROM versions");
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const backupsOf = (rest = "") => `/managed-services/${shop.service.id}/backups${rest}`;

  async function open({
    connection: { host, port, ca_certificate: ca },
    password,
  }: RunningService): Promise<Connection> {
    const stream = connect({ host: await addressOf(platform, host), port });
    const options = { host, user: "app_user", password, database: "defaultdb", stream };
    const client = await createConnection({ ...options, ssl: { ca, verifyIdentity: true } });
    client.on("error", () => undefined);
    return client;
  }

  async function query<Row extends object>(of: RunningService, sql: string): Promise<Row[]> {
    const client = await open(of);
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  const setVersion = (version: string) => query(shop, `REPLACE INTO versions VALUES ('${version}')`);
  const versions = async (of: RunningService) =>
    (await query<{ version: string }>(of, "SELECT version FROM versions")).map(({ version }) => version);
  const checksum = async (of: RunningService) =>
    (await query<{ Checksum: number }>(of, "CHECKSUM TABLE bulk"))[0]?.Checksum;
  const machineOf = (id: string) => platform.processes().machines.find((machine) => machine.id === id);

  async function startBackup(): Promise<string> {
    return expectStatus(await platform.rest.post<BackupJson>(backupsOf()), 202).json.id;
  }

  async function completed(id: string): Promise<BackupJson> {
    const check = async () => {
      const backup = expectStatus(await platform.rest.get<BackupJson>(backupsOf(`/${id}`)), 200).json;
      return ["completed", "failed"].includes(backup.status) ? backup : undefined;
    };
    const describe = () => services.describe(shop.service.id);
    const backup = await waitUntil(`the backup ${id} has ended`, check, { withinMs: longMs, everyMs: 100, describe });
    expect(backup).toMatchObject({ status: "completed", kind: "snapshot" });
    return backup;
  }

  async function created(response: { status: number; text: string; json: unknown }): Promise<RunningService> {
    const { id } = expectStatus(response, 202).json as ServiceJson;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  it(
    "are restored by id and forked, with the data of their times and other passwords",
    async () => {
      await setVersion("one");
      first = await completed(await startBackup());
      await setVersion("two");
      const second = await completed(await startBackup());
      await setVersion("three");
      const responses = [
        await platform.rest.post(backupsOf(`/${first.id}/restore`), { target_service_name: "by-id" }),
        await platform.rest.post(`/managed-services/${shop.service.id}/fork`, { name: "forked" }),
      ];
      for (const response of responses) expectStatus(response, 202);
      expect(responses.map(({ json }) => json["restored_from"])).toMatchObject([
        { kind: "restore", backup_id: first.id },
        { kind: "fork", backup_id: second.id },
      ]);
      const copies = await Promise.all(responses.map(created));
      expect(await Promise.all(copies.map(versions))).toEqual([["one"], ["one", "two"]]);
      for (const copy of copies) {
        expect(copy.password).not.toBe(shop.password);
        expect(await checksum(copy)).toBe(await checksum(shop));
        expect(
          await query(copy, "SELECT status FROM information_schema.events WHERE event_name = 'hourly'"),
        ).toMatchObject([{ STATUS: "DISABLED" }]);
      }
      for (const copy of copies) await services.delete(copy.service.id);
    },
    longMs,
  );

  it(
    "are checked by a drill, table by table, and so is a point in time",
    async () => {
      const { id } = expectStatus(await platform.rest.post<{ id: string }>(backupsOf("/drill")), 202).json;
      const drill = await drilled(platform, shop.service.id, id);
      expect(drill).toMatchObject({ status: "completed", error: null });
      expect(drill.target).not.toBeNull();
      expect(drill.checks.map(({ name, of, passed }) => [name, of, passed])).toEqual([
        ["restored", "backup", true],
        ["structure", "backup", true],
        ["contents", "backup", true],
        ["restored", "target", true],
        ["structure", "target", true],
        ["heartbeat", "target", true],
      ]);
      await noDrillMachines(platform);
    },
    longMs,
  );

  it.each(["engine", "agent", "controller", "component"] as const)(
    "complete although the %s is killed while the rows are read",
    async (victim) => {
      const id = await startBackup();
      const nodeId = shop.service.nodes[0]?.id ?? "";
      // Beside the archive of the log.
      await waitUntil("the dump runs", () => (machineOf(nodeId)?.jobs.length ?? 0) > 1, { everyMs: 20 });
      kill(victim, nodeId);
      await completed(id);
    },
    longMs,
  );

  it.each(["engine", "agent", "controller", "component"] as const)(
    "are restored although the %s is killed while the rows are loaded",
    async (victim) => {
      const response = await platform.rest.post<ServiceJson>(backupsOf(`/${first.id}/restore`), {
        target_service_name: `killed-${victim}`,
      });
      const nodeId = expectStatus(response, 202).json.nodes[0]?.id ?? "";
      // The program that creates the engine's own files has no socket.
      const isLoading = () => {
        const { engine } = machineOf(nodeId) ?? {};
        return engine !== undefined && argumentsAndEnvironment(engine).cmdline.includes("/private/mysql.sock");
      };
      await waitUntil("rows are loaded", isLoading, { everyMs: 20, withinMs: longMs });
      kill(victim, nodeId);
      const copy = await created(response);
      expect(await versions(copy)).toEqual(["one"]);
      expect(await checksum(copy)).toBe(await checksum(shop));
      await services.delete(copy.service.id);
    },
    longMs,
  );

  function kill(victim: "engine" | "agent" | "controller" | "component", nodeId: string): void {
    const machine = machineOf(nodeId);
    const pids = {
      engine: [machine?.engine],
      agent: [machine?.agent],
      controller: [platform.processes().controllers[0]],
      component: machine?.jobs ?? [],
    };
    for (const pid of pids[victim]) killImmediately(pid ?? 0);
  }

  it(
    "bring a deleted service back with its rows, its hostname and its password",
    async () => {
      // Until its session ends, and beyond the beginning of its final backup.
      await query(shop, "CREATE TABLE late (n INT PRIMARY KEY)");
      const { acknowledged, ended } = writeUntilEnd(async (next, note) => {
        const client = await open(shop);
        for (let n = next(); ; n = next()) {
          await client.query(`INSERT INTO late VALUES (${n})`);
          note(n);
        }
      });
      await waitUntil("rows are acknowledged", () => acknowledged.length > 100, { everyMs: 20 });
      await services.delete(shop.service.id);
      await ended;
      const undeleted = await created(await platform.rest.post(`/managed-services/${shop.service.id}/undelete`));
      expect(undeleted.service).toMatchObject({ id: shop.service.id, hostname: shop.service.hostname });
      expect(undeleted.password).toBe(shop.password);
      const found = new Set((await query<{ n: number }>(undeleted, "SELECT n FROM late")).map(({ n }) => n));
      expect(acknowledged.filter((n) => !found.has(n))).toEqual([]);
      expect(
        await query(undeleted, "SELECT status FROM information_schema.events WHERE event_name = 'hourly'"),
      ).toMatchObject([{ STATUS: "ENABLED" }]);
    },
    longMs,
  );
});
