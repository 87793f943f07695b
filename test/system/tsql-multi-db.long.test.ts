import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { batchOnce, openTds, rowsOnce } from "./tsql/tsql-service.ts";

const longMs = 240_000;
const skip = await requireRecipes(import.meta.filename, "tsql");

describe.skipIf(skip !== undefined)("a T-SQL service of the layout multi-db", () => {
  let platform: Platform;
  let services: Services;
  let shop: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1" } });
    services = createServices(platform);
    shop = await services.createRunning("shop", { database_type: "tsql", layout_mode: "multi-db" });
    // The front end starts beside the engine.
    await waitUntil("T-SQL clients sign in", () => batch("SELECT 1 AS one").catch(() => undefined));
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const path = (rest = "") => `/managed-services/${shop.service.id}${rest}`;
  const batch = (sql: string, login = {}) => batchOnce(platform, shop, sql, login);
  const done = async (sql: string, login = {}) => {
    const { errors, sets } = await batch(sql, login);
    expect(errors).toEqual([]);
    return sets.at(-1);
  };
  const rows = (sql: string) => rowsOnce(platform, shop, sql);
  const databases = async () => {
    const response = await platform.rest.get<{ databases: readonly { name: string; state: string }[] }>(
      path("/databases"),
    );
    return expectStatus(response, 200).json.databases.map(({ name }) => name);
  };
  const reveal = async (user: string) => {
    const response = await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`));
    return { user, password: expectStatus(response, 200).json.password };
  };

  it("has its layout for good", async () => {
    expect(shop.service).toMatchObject({ layout_mode: "multi-db" });
    const change = await platform.rest.patch<ProblemJson>(path(), { layout_mode: "single-db" });
    expect(expectStatus(change, 400).json.errors).toEqual([
      expect.objectContaining({ field: "layout_mode", code: "fixed" }),
    ]);
    const create = { name: "plain", database_type: "postgresql", plan_name: "tier-1", storage_size_gb: 1 };
    for (const layout of ["multi-db", "many"]) {
      const refused = await platform.rest.post<ProblemJson>("/managed-services", { ...create, layout_mode: layout });
      expect(expectStatus(refused, 400).json.errors).toEqual([expect.objectContaining({ field: "layout_mode" })]);
    }
  });

  it("has databases of T-SQL and of the API, whose tables a join combines", async () => {
    await done("CREATE DATABASE Sales; CREATE DATABASE gone");
    const created = expectStatus(
      await platform.rest.post<{ state: string }>(path("/databases"), { name: "stock_1" }),
      201,
    );
    expect(created.json).toMatchObject({ name: "stock_1", state: "ready" });
    expectStatus(await platform.rest.post(path("/databases"), { name: "stock_1" }), 409);
    expectStatus(await platform.rest.post(path("/databases"), { name: "master" }), 422);
    await done(`USE Sales; CREATE TABLE Orders (Id int PRIMARY KEY, ItemId int);
      INSERT INTO Orders VALUES (1, 10), (2, 20); USE stock_1;
      CREATE TABLE Items (Id int PRIMARY KEY, Name nvarchar(20)); INSERT INTO Items VALUES (10, 'ten'), (20, 'twenty')`);
    const client = await openTds(platform, shop, { database: "SALES" });
    const { sets } = await client.batch(
      "SELECT o.Id, i.Name, DB_NAME() AS db FROM Orders o JOIN stock_1..Items i ON i.Id = o.ItemId ORDER BY 1",
    );
    await client.close();
    expect(sets).toEqual([
      [
        { Id: 1, Name: "ten", db: "Sales" },
        { Id: 2, Name: "twenty", db: "Sales" },
      ],
    ]);
    expect(await rows("SELECT name FROM stock__1_dbo.items ORDER BY id")).toEqual([
      { name: "ten" },
      { name: "twenty" },
    ]);
    expect(await databases()).toEqual(["defaultdb", "gone", "sales", "stock_1"]);
    expectStatus(await platform.rest.delete(path("/databases/gone")), 204);
    expect(await databases()).toEqual(["defaultdb", "sales", "stock_1"]);
    await expect(openTds(platform, shop, { database: "gone" })).rejects.toThrow('Cannot open database "gone"');
    expectStatus(await platform.rest.delete(path("/databases/defaultdb")), 422);
  });

  it("fires a trigger of a database for clients of both protocols", async () => {
    const client = await openTds(platform, shop, { database: "Sales" });
    expect((await client.batch("CREATE TABLE Log (n int)")).errors).toEqual([]);
    const trigger = "CREATE TRIGGER Logged ON Orders AFTER INSERT AS INSERT INTO Log SELECT COUNT(*) FROM inserted";
    expect((await client.batch(trigger)).errors).toEqual([]);
    await rows("INSERT INTO sales_dbo.orders VALUES (3, 10), (4, 10)");
    await done("INSERT INTO Sales..Orders VALUES (5, 10)");
    expect((await client.batch("SELECT n FROM Log ORDER BY n")).sets).toEqual([[{ n: 1 }, { n: 2 }]]);
    await client.close();
  });

  it("has users with the privileges of their roles in each database", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite", owner: "admin" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    const [reader, writer, owner] = await Promise.all([reveal("reader"), reveal("writer"), reveal("owner")]);
    expect(await done("SELECT COUNT(*) AS n FROM Sales..Orders", reader)).toEqual([{ n: 5 }]);
    expect((await batch("DELETE FROM Sales..Orders", reader)).errors).toEqual([3906]);
    await done("INSERT INTO stock_1..Items VALUES (30, 'thirty')", writer);
    expect((await batch("CREATE TABLE Sales..Forbidden (a int)", writer)).errors).toEqual([229]);
    expect((await batch("CREATE DATABASE forbidden", writer)).errors).toEqual([262]);
    expect((await batch("DROP DATABASE Sales", writer)).errors).toEqual([3701]);
    await done("CREATE DATABASE owned; USE owned; CREATE TABLE t (a int); INSERT INTO t VALUES (1)", owner);
    await done("USE Sales; CREATE TABLE OfOwner (a int)", owner);
    expect(await done("SELECT a FROM owned..t", reader)).toEqual([{ a: 1 }]);
    // Another user of the same role may drop what is not its own.
    await done("DROP DATABASE owned");
  });

  it("is assessed by its layout", async () => {
    type Assessment = { readonly findings: readonly { readonly verdict: string }[] };
    const sql = "CREATE DATABASE a; USE a; SELECT 1 AS one FROM Sales.dbo.Orders";
    const { findings } = expectStatus(await platform.rest.post<Assessment>(path("/tsql/assess"), { sql }), 200).json;
    expect(findings.filter(({ verdict }) => verdict === "unsupported")).toEqual([]);
  });

  it("keeps its databases when the front end is killed", async () => {
    const machine = platform.processes().machines.find(({ id }) => id === shop.service.nodes[0]?.id);
    killImmediately(machine?.tds ?? 0);
    const count = () => batch("SELECT COUNT(*) AS n FROM stock_1..Items").catch(() => undefined);
    expect((await waitUntil("clients sign in again", count)).sets).toEqual([[{ n: 3 }]]);
  });

  it(
    "is restored to a point in time and forked with its layout and its databases",
    async () => {
      const window = async () => (await services.get(shop.service.id)).backups?.restorable;
      await waitUntil("the log continues from a base", async () => (await window()) != null, { withinMs: longMs });
      const backup = expectStatus(await platform.rest.post<{ id: string }>(path("/backups")), 202).json;
      const stateOf = async () =>
        (await platform.rest.get<{ status: string }>(path(`/backups/${backup.id}`))).json.status;
      await waitUntil("the backup is completed", async () => (await stateOf()) === "completed", { withinMs: longMs });
      await done("INSERT INTO Sales..Orders VALUES (9, 30)");
      const point = new Date(await reserveMillisecond()).toISOString();
      await done("DELETE FROM Sales..Orders; DROP DATABASE stock_1");
      await waitUntil("the point can be restored", async () => ((await window())?.to ?? "") > point, {
        withinMs: longMs,
      });
      const body = { restore_point: point, target_service_name: "before" };
      const restored = expectStatus(await platform.rest.post<ServiceJson>(path("/backups/restore"), body), 202).json;
      const forked = expectStatus(
        await platform.rest.post<ServiceJson>(path("/fork"), { name: "copy", backup_id: backup.id }),
        202,
      ).json;
      expect(restored).toMatchObject({ layout_mode: "multi-db" });
      expect(forked).toMatchObject({ layout_mode: "multi-db" });
      await services.settled(restored.id, "Running", longMs);
      const before = await services.open(restored.id);
      const join = "SELECT i.Name FROM Sales..Orders o JOIN stock_1..Items i ON i.Id = o.ItemId WHERE o.Id = 9";
      expect((await batchOnce(platform, before, join)).sets).toEqual([[{ Name: "thirty" }]]);
      expect((await batchOnce(platform, before, "USE Sales; INSERT INTO Orders VALUES (10, 10)")).errors).toEqual([]);
      expect((await batchOnce(platform, before, "SELECT COUNT(*) AS n FROM Sales..Log")).sets).toEqual([[{ n: 4 }]]);
      await services.settled(forked.id, "Running", longMs);
      const copy = await services.open(forked.id);
      expect(
        (await batchOnce(platform, copy, "SELECT name FROM sys.databases WHERE database_id > 4 ORDER BY name")).sets,
      ).toEqual([[{ name: "defaultdb" }, { name: "Sales" }, { name: "stock_1" }]]);
    },
    longMs,
  );
});
