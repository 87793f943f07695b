import { connect } from "node:net";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { LogsJson, PageJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

interface MetricsJson {
  readonly series: readonly { readonly metric: string; readonly points: readonly unknown[] }[];
  readonly absent: readonly { readonly metric: string; readonly reason: string }[];
}

const longMs = 300_000;
const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("a MySQL of one node", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    // The size of the redo log is limited by the disk.
    shop = await services.createRunning("shop", { database_type: "mysql", storage_size_gb: 5 });
  }, longMs);
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${shop.service.id}${rest}`;
  const wait = { describe: () => services.describe(shop.service.id) };

  async function query<Row extends object>(sql: string): Promise<Row[]> {
    const { host, port, ca_certificate: ca } = shop.connection;
    const stream = connect({ host: await addressOf(platform, host), port });
    const login = { host, user: "app_user", password: shop.password, database: "defaultdb", stream };
    const client = await createConnection({ ...login, ssl: { ca, verifyIdentity: true } });
    client.on("error", () => undefined);
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }
  const count = () => query<{ count: number }>("SELECT COUNT(*) AS count FROM items");

  function killEngine(): void {
    const engine = platform.processes().machines.find(({ id }) => id === shop.service.nodes[0]?.id)?.engine;
    expect(engine).toBeGreaterThan(1);
    killImmediately(engine ?? 0);
  }

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

  it("logs a slow statement apart from the engine's own log", async () => {
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters: { long_query_time: "0" } }), 200);
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
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters: { long_query_time: "10" } }), 200);
  });

  it("is measured", async () => {
    const names = ["connections", "mysql_queries_per_second", "mysql_innodb_buffer_pool_hit_rate", "mysql_open_files"];
    const metrics = [...names, "mysql_replication_lag_seconds"].map((name) => `metric=${name}`).join("&");
    const found = await waitUntil("samples of all metrics", async () => {
      const response = await platform.rest.get<MetricsJson>(path(`/metrics?${metrics}&period=15m`));
      const { series, absent } = expectStatus(response, 200).json;
      const measured = series.filter(({ points }) => points.length > 0).map(({ metric }) => metric);
      // The first sample names the metrics that the engine lacks.
      return absent.length > 0 && names.every((name) => measured.includes(name)) && response.json;
    });
    expect(found.absent.map(({ metric }) => metric)).toEqual(["mysql_replication_lag_seconds"]);
  });

  it("retains its data over a stop and a start", async () => {
    await query("CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60), KEY (k))");
    await query("INSERT INTO items (k, c, pad) VALUES (1, 'one', ''), (2, 'two', '')");
    await services.verb(shop.service.id, "stop");
    await services.verb(shop.service.id, "start");
    expect(await count()).toEqual([{ count: 2 }]);
  });

  it("shows in its health how far it has recovered after its engine was killed, and has every row", async () => {
    const parameters = { innodb_redo_log_capacity: String(512 << 20) };
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    const columns = "FLOOR(RAND() * 1e6), HEX(RANDOM_BYTES(60)), HEX(RANDOM_BYTES(30))";
    for (let doubled = 0; doubled < 17; doubled += 1)
      await query(`INSERT INTO items (k, c, pad) SELECT ${columns} FROM items`);
    killEngine();
    const statuses = new Set<string>();
    const recovers = async () => {
      const { health } = await services.get(shop.service.id);
      statuses.add(health.status);
      return (health.reason ?? "").startsWith("The engine recovers after a crash");
    };
    await waitUntil("its health shows the recovery", recovers, { ...wait, everyMs: 20 });
    expect([...statuses]).not.toContain("unhealthy");
    const counted = () => count().catch(() => []);
    await waitUntil("the engine has its rows", async () => (await counted())[0]?.count === 2 << 17, wait);
    const isHealthy = async () => (await services.get(shop.service.id)).health.status === "healthy";
    await waitUntil("it is healthy", isHealthy, wait);
  });
});
