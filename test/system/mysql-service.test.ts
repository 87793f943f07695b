import { execFile } from "node:child_process";
import { connect } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { LogsJson, PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { withClientFiles, withHosts } from "@holdfast/testing/engines/client-files.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

interface BackupJson {
  readonly id: string;
  readonly status: string;
}

interface MetricsJson {
  readonly series: readonly { readonly metric: string; readonly points: readonly unknown[] }[];
  readonly absent: readonly { readonly metric: string; readonly reason: string }[];
}

const execute = promisify(execFile);
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a managed MySQL", () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;
  let backupId: string;
  /** Id of a copy that is restored beside the tests after it. */
  let before: string;
  let clients: TestImage;

  beforeAll(async () => {
    const built = await testImage("mysql");
    if (typeof built === "string") throw new Error(built);
    clients = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_IDLE_LOG_AFTER_S: "2" } });
    services = createServices(platform);
    shop = await services.createRunning("shop", { database_type: "mysql" });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${shop.service.id}${rest}`;

  async function open({
    of = shop,
    user = "app_user",
    password = shop.password,
    plain = false,
  } = {}): Promise<Connection> {
    const { host, port, ca_certificate: ca } = of.connection;
    const stream = connect({ host: await addressOf(platform, host), port });
    const ssl = plain ? {} : { ssl: { ca, verifyIdentity: true } };
    const client = await createConnection({ host, user, password, database: "defaultdb", stream, ...ssl });
    client.on("error", () => undefined);
    return client;
  }

  async function query<Row extends object>(sql: string, login = {}): Promise<Row[]> {
    const client = await open(login);
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  const reveal = async (user: string) =>
    expectStatus(await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`)), 200)
      .json.password;

  it("is entered over TLS with the certificate verified against its name, and not without TLS", async () => {
    await query("CREATE TABLE items (id INT PRIMARY KEY, name TEXT)");
    await query("INSERT INTO items VALUES (1, 'one')");
    expect(await query("SELECT name FROM items")).toEqual([{ name: "one" }]);
    await expect(open({ plain: true })).rejects.toThrow("Access denied");
    expect(shop.connection.uri).toContain("mysql://app_user@");
    // Completes beside the next tests.
    backupId = expectStatus(await platform.rest.post<BackupJson>(path("/backups")), 202).json.id;
  });

  it.skipIf(!asRoot)("is entered by the mysql client by name", async () => {
    const root = findImage(imagesDirectory(process.env), "mysql")?.root ?? "";
    const { host, port } = shop.connection;
    const tls = ["--ssl-mode=VERIFY_IDENTITY", "--ssl-ca=/mnt/ca.pem"];
    const target = ["--protocol=TCP", "-h", host, "-P", String(port), "-u", "app_user"];
    const argv = ["mysql", "--no-defaults", ...target, ...tls, "-Ne", "SELECT name FROM items", "defaultdb"];
    // The client of the image resolves the name by a file of hosts over the image's own.
    const script =
      'mount --bind "$1/hosts" "$2/etc/hosts" && mount --bind "$1" "$2/mnt" && shift 2 && exec chroot "$@"';
    const inside = [`--userspec=${testUid}:${testUid}`, root, ...argv];
    const env = { ...process.env, MYSQL_PWD: shop.password };
    const { stdout } = await withClientFiles(platform, shop, (directory) =>
      execute("unshare", ["--mount", "sh", "-c", script, "sh", directory, root, ...inside], { env, cwd: "/" }),
    );
    expect(stdout).toBe("one\n");
  });

  it("is entered by PyMySQL by name, with transactions and values of each kind", async () => {
    const { host, port } = shop.connection;
    const script = join(import.meta.dirname, "mysql");
    const output = await withClientFiles(platform, shop, (directory) =>
      clients.run(
        withHosts(join(directory, "hosts"), ["/usr/bin/python3", join(script, "pymysql-client.py")]),
        [directory, script],
        { MYSQL_HOST: host, MYSQL_PORT: String(port), MYSQL_PWD: shop.password, MYSQL_CA: join(directory, "ca.pem") },
      ),
    );
    expect(JSON.parse(output)).toEqual({ same: true, tls: "TLSv1.3", "without TLS": 1045, "another password": 1045 });
  });

  it("begins a restore to the moment before rows were deleted", async () => {
    const stateOf = async () => (await platform.rest.get<BackupJson>(path(`/backups/${backupId}`))).json.status;
    await waitUntil("the backup is complete", async () => (await stateOf()) === "completed");
    await query("INSERT INTO items VALUES (2, 'two'), (3, 'three')");
    const point = new Date(Date.now() + 1);
    await waitUntil("the moment is over", () => new Date() > point);
    await query("DELETE FROM items WHERE id > 1");
    const isArchived = async () =>
      ((await services.get(shop.service.id)).backups?.restorable?.to ?? "") >= point.toISOString();
    await waitUntil("the log of the moment is archived", isArchived);
    const body = { restore_point: point.toISOString(), target_service_name: "before" };
    const restored = await platform.rest.post<ServiceJson>(path("/backups/restore"), body);
    before = expectStatus(restored, 202).json.id;
  });

  it("has users with the privileges of their roles, and passwords that can be revealed and reset", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    await query("INSERT INTO items VALUES (2, 'two')", { user: "writer", password: await reveal("writer") });
    const reader = { user: "reader", password: await reveal("reader") };
    expect(await query("SELECT id FROM items ORDER BY id", reader)).toEqual([{ id: 1 }, { id: 2 }]);
    await expect(query("DELETE FROM items", reader)).rejects.toThrow(/denied/);
    expectStatus(await platform.rest.post(path("/database-users/writer/reset-password")), 200);
    expect(await query("SELECT 1 AS one", { user: "writer", password: await reveal("writer") })).toEqual([{ one: 1 }]);
    // A password that was changed in SQL is not the platform's any more.
    await query("ALTER USER 'writer'@'%' IDENTIFIED BY 'by hand'");
    expectStatus(await platform.rest.post(path("/database-users/writer/reveal-password")), 409);
    const long = { username: "u".repeat(33), role: "readonly" };
    expect(expectStatus(await platform.rest.post<ProblemJson>(path("/database-users"), long), 400).text).toContain(
      "32",
    );
    expectStatus(await platform.rest.delete(path("/database-users/reader")), 204);
    const { json } = await platform.rest.get<PageJson<"users", { username: string }>>(path("/database-users"));
    expect(json.users.map(({ username }) => username)).toEqual(["app_user", "writer"]);
  });

  it("has databases that are created, listed and dropped", async () => {
    expectStatus(await platform.rest.post(path("/databases"), { name: "orders-2026" }), 201);
    await query("CREATE TABLE `orders-2026`.t (a INT)");
    const list = async () =>
      expectStatus(await platform.rest.get<PageJson<"databases", { name: string }>>(path("/databases")), 200).json
        .databases;
    expect((await list()).map(({ name }) => name)).toEqual(["defaultdb", "orders-2026"]);
    expectStatus(await platform.rest.delete(path("/databases/orders-2026")), 204);
    expect((await list()).map(({ name }) => name)).toEqual(["defaultdb"]);
  });

  it("applies a parameter without a restart", async () => {
    const parameters = { long_query_time: "0", sort_buffer_size: "1MB" };
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    const rows = await query("SELECT @@GLOBAL.long_query_time AS slow, @@GLOBAL.sort_buffer_size AS size");
    expect(rows).toEqual([{ slow: 0, size: 1_048_576 }]);
  });

  it("logs a slow statement apart from the engine's own log", async () => {
    await query("SELECT 'a slow statement'");
    const logged = async (component: string) =>
      expectStatus(
        await platform.rest.get<LogsJson>(path(`/logs?newest=true&contains=a+slow+statement${component}`)),
        200,
      ).json.lines;
    const [line] = await waitUntil("the statement is logged", async () => {
      const lines = await logged("&component=slow");
      return lines.length > 0 && lines;
    });
    expect(line).toMatchObject({ component: "slow", message: "SELECT 'a slow statement';" });
    expect(await logged("")).toEqual([]);
  });

  it("is measured", async () => {
    const names = ["connections", "mysql_queries_per_second", "mysql_innodb_buffer_pool_hit_rate", "mysql_open_files"];
    const query = [...names, "mysql_replication_lag_seconds"].map((name) => `metric=${name}`).join("&");
    const found = await waitUntil("samples of all metrics", async () => {
      const response = await platform.rest.get<MetricsJson>(path(`/metrics?${query}&period=15m`));
      const { series, absent } = expectStatus(response, 200).json;
      const measured = series.filter(({ points }) => points.length > 0).map(({ metric }) => metric);
      // The first sample names the metrics that the engine lacks.
      return absent.length > 0 && names.every((name) => measured.includes(name)) && response.json;
    });
    expect(found.absent.map(({ metric }) => metric)).toEqual(["mysql_replication_lag_seconds"]);
  });

  it("retains its data over a stop, a start and a killed engine", async () => {
    await services.verb(shop.service.id, "stop");
    await services.verb(shop.service.id, "start");
    expect(await query("SELECT COUNT(*) AS count FROM items")).toEqual([{ count: 2 }]);
    const engine = platform.processes().machines.find(({ id }) => id === shop.service.nodes[0]?.id)?.engine;
    expect(engine).toBeGreaterThan(1);
    killImmediately(engine ?? 0);
    const counted = () => query<{ count: number }>("SELECT COUNT(*) AS count FROM items").catch(() => []);
    await waitUntil("the engine is back with its rows", async () => (await counted())[0]?.count === 2);
  });

  it("is restored to that moment into a new service with other passwords", async () => {
    await services.settled(before, "Running");
    const copy = await services.open(before);
    const found = await query("SELECT id FROM items ORDER BY id", { of: copy, password: copy.password });
    expect(found).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
    await expect(query("SELECT 1", { of: copy })).rejects.toThrow("Access denied");
  });

  it("is deleted", async () => {
    const remove = async (id: string) => {
      expectStatus(await platform.rest.delete(`/managed-services/${id}?skip_final_backup=true`), 202);
      await services.deleted(id);
    };
    await Promise.all([shop.service.id, before].map(remove));
  });
});
