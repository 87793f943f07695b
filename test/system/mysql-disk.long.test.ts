import { connect } from "node:net";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { fillDisk } from "@holdfast/testing/machines/fill-disk.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";

const mib = 1024 ** 2;
const skip = await requireRecipes(import.meta.filename, "mysql");

// Only root gives each machine a separate disk that can be full.
describe.skipIf(skip !== undefined || !asRoot)("a MySQL whose disk fills", () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;
  let nodeId = "";
  /** The last number that was acknowledged. */
  let acknowledged = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    shop = await services.createRunning("shop", { database_type: "mysql" });
    nodeId = shop.service.nodes[0]?.id ?? "";
    await query("CREATE TABLE kept (n INT PRIMARY KEY, bytes MEDIUMBLOB)");
  });
  afterAll(() => platform?.remove());

  const path = (rest: string) => `/managed-services/${shop.service.id}${rest}`;
  const machine = () => platform.processes().machines.find(({ id }) => id === nodeId);
  const data = () => pathInside(machine()?.agent, "/data");
  const options = { everyMs: 200, describe: () => services.describe(shop.service.id) };
  const storageCheck = async () =>
    (await services.get(shop.service.id)).health.checks.find(({ name }) => name === "storage");

  async function open(): Promise<Connection> {
    const { host, port, ca_certificate: ca } = shop.connection;
    const stream = connect({ host: await addressOf(platform, host), port });
    const login = { host, user: "app_user", password: shop.password, database: "defaultdb", stream };
    const client = await createConnection({ ...login, ssl: { ca, verifyIdentity: true } });
    client.on("error", () => undefined);
    return client;
  }

  async function query<Row extends object>(sql: string): Promise<Row[]> {
    const client = await open();
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  /** Writes a row of 256 KiB. */
  async function write(): Promise<true> {
    const n = acknowledged + 1;
    await query(`REPLACE INTO kept VALUES (${n}, REPEAT(RANDOM_BYTES(1024), 256))`);
    acknowledged = n;
    return true;
  }

  async function hasEveryRow(): Promise<void> {
    const [rows] = await query<{ count: number }>(`SELECT COUNT(*) AS count FROM kept WHERE n <= ${acknowledged}`);
    expect(rows?.count).toBe(acknowledged);
  }

  it("is read-only for users before the disk is full, and serves reads", async () => {
    for (let row = 0; row < 5; row += 1) await write();
    await fillDisk(data(), 40 * mib);
    await waitUntil(
      "users cannot write",
      () =>
        write().then(
          () => false,
          (error: Error) => error.message.includes("read-only"),
        ),
      options,
    );
    expect(await storageCheck()).toMatchObject({ status: "unhealthy" });
    await hasEveryRow();
  });

  it("stops, expands and starts although the disk is full, and has every acknowledged row", async () => {
    await fillDisk(data());
    expectStatus(await platform.rest.post(path("/stop")), 202);
    await services.settled(shop.service.id, "Stopped");
    expectStatus(await platform.rest.post(path("/storage/expand"), { storage_size_gb: 2 }), 202);
    await services.settled(shop.service.id, "Stopped");
    expectStatus(await platform.rest.post(path("/start")), 202);
    await services.settled(shop.service.id, "Running");
    await waitUntil("users can write", () => write(), options);
    await hasEveryRow();
  });
});
