import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tsql as tsqlClient } from "@holdfast/cli/clients/tsql.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
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
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { batchOnce, openTds, rowsOnce } from "./tsql/tsql-service.ts";

const skip = await requireRecipes(import.meta.filename, "tsql");

describe.skipIf(skip !== undefined)("a managed T-SQL service", () => {
  let platform: Platform;
  let services: Services;
  let erp: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    erp = await services.createRunning("erp", { database_type: "tsql" });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${erp.service.id}${rest}`;

  const open = (login = {}) => openTds(platform, erp, login);
  const batch = (sql: string, login = {}) => batchOnce(platform, erp, sql, login);
  const rows = (sql: string) => rowsOnce(platform, erp, sql);
  const reveal = async (user: string) => ({
    user,
    password: expectStatus(
      await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`)),
      200,
    ).json.password,
  });
  const processes = () => platform.processes().machines.find(({ id }) => id === erp.service.nodes[0]?.id);

  it("is healthy by both protocols", async () => {
    const isHealthy = async () => {
      const { status, checks } = (await services.get(erp.service.id)).health;
      // The check of the front end is reported after the first sample of the engine.
      return status === "healthy" && ["liveness", "tds"].every((check) => checks.some(({ name }) => name === check));
    };
    await waitUntil("the checks of both protocols are healthy", isHealthy);
  });

  it("has the ports and connection strings of both protocols", () => {
    const { connection } = erp;
    const { host } = connection;
    expect(connection).toMatchObject({
      port: 1433,
      uri: `sqlserver://app_user@${host}:1433?database=defaultdb&encrypt=true&TrustServerCertificate=false`,
      jdbc_url: `jdbc:sqlserver://${host}:1433;databaseName=defaultdb;user=app_user;encrypt=true;trustServerCertificate=false`,
      ado_connection_string: `Server=tcp:${host},1433;Database=defaultdb;User ID=app_user;Encrypt=True;TrustServerCertificate=False`,
      postgresql_uri: `postgres://app_user@${host}:5432/defaultdb?sslmode=verify-full`,
    });
    const ports = connection.listeners
      .filter(({ audience }) => audience === "public")
      .map(({ name, port }) => [name, port]);
    expect(Object.fromEntries(ports)).toEqual({ tds: 1433, postgresql: 5432 });
  });

  it("has the same rows for tedious and for clients of PostgreSQL", async () => {
    const created = await batch(`
      CREATE TABLE Items (Id int IDENTITY PRIMARY KEY, Name nvarchar(50) NOT NULL);
      INSERT INTO Items (Name) OUTPUT inserted.Id VALUES (N'one');
      SELECT Name FROM ITEMS WHERE name = 'ONE'`);
    expect(created.errors).toEqual([]);
    expect(created.sets).toEqual([[{ Id: 1 }], [{ Name: "one" }]]);
    expect(await rows("SELECT id, name FROM dbo.items")).toEqual([{ id: 1, name: "one" }]);
    await rows("INSERT INTO dbo.items (name) VALUES ('two')");
    expect((await batch("SELECT COUNT(*) AS n FROM Items")).sets).toEqual([[{ n: 2 }]]);
  });

  it.skipIf(!asRoot)("is entered by FreeTDS's tsql with the session of the command line", async () => {
    const image = findImage(imagesDirectory(process.env), "tsql");
    const directory = mkdtempSync(join(tmpdir(), "holdfast-client-"));
    chmodSync(directory, 0o755);
    mkdirSync(join(directory, "private"));
    const { host } = erp.connection;
    const write = (name: string, text: string) => {
      writeFileSync(join(directory, name), text);
      return `/mnt/${name}`;
    };
    write("hosts", `${await addressOf(platform, host)} ${host}\n`);
    const login = { user: "app_user", password: erp.password };
    const session = tsqlClient.session(erp.connection, login, { write });
    // The client of the image resolves the name by a file of hosts over the image's own.
    const script =
      'mount --bind "$1/hosts" "$2/etc/hosts" && mount --bind "$1" "$2/mnt" && shift 2 && exec chroot "$@"';
    const root = image?.root ?? "";
    const argv = ["--mount", "sh", "-c", script, "sh", directory, root];
    const inside = [`--userspec=${testUid}:${testUid}`, root, "tsql", ...session.args];
    const env = { ...process.env, ...session.environment, LC_ALL: "C.UTF-8" };
    const output = await new Promise<string>((resolve, reject) => {
      const child = execFile("unshare", [...argv, ...inside], { env, cwd: "/" }, (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(`${error.message} ${stdout} ${stderr}`)),
      );
      child.stdin?.end(`${session.input}SELECT Name FROM Items WHERE Id = 2\nGO\nexit\n`);
    });
    expect(output).toContain("Name\ntwo\n");
    rmSync(directory, { recursive: true });
  });

  it("has users with the privileges of their roles", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite", owner: "admin" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    const [reader, writer, owner] = await Promise.all([reveal("reader"), reveal("writer"), reveal("owner")]);
    expect((await batch("SELECT Id FROM Items ORDER BY Id", reader)).sets).toEqual([[{ Id: 1 }, { Id: 2 }]]);
    expect((await batch("DELETE FROM Items", reader)).errors).toEqual([3906]);
    expect((await batch("INSERT INTO Items (Name) VALUES ('three')", writer)).errors).toEqual([]);
    expect((await batch("CREATE TABLE Forbidden (a int)", writer)).errors).toEqual([229]);
    expect((await batch("CREATE TABLE Owned (a int)", owner)).errors).toEqual([]);
    expect((await batch("INSERT INTO Owned VALUES (1)", writer)).errors).toEqual([]);
  });

  it("admits no role of the platform, and lets no user write to its schemas", async () => {
    for (const user of ["holdfast", "holdfast_console", "holdfast_replica", "holdfast_admin"])
      await expect(open({ user, password: "any" })).rejects.toThrow(`Login failed for user '${user}'.`);
    for (const table of ["sys.schemas", "sys.objects", "holdfast_tsql.spelling"])
      await expect(rows(`DELETE FROM ${table}`)).rejects.toThrow(/permission denied|cannot delete/);
  });

  it("applies a parameter without a restart", async () => {
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters: { work_mem: "7MB" } }), 200);
    expect(await rows("SHOW work_mem")).toEqual([{ work_mem: "7MB" }]);
  });

  it("refuses what a service of one database lacks", async () => {
    expect(erp.service).toMatchObject({ layout_mode: "single-db" });
    expectStatus(await platform.rest.get(path("/databases")), 422);
    expectStatus(await platform.rest.post(path("/databases"), { name: "other" }), 422);
    expect((await batch("CREATE DATABASE other")).errors).toEqual([262]);
    const pooler = { pooler: { enabled: true } };
    expect(expectStatus(await platform.rest.patch<ProblemJson>(path(), pooler), 400).text).toContain("no pooler");
  });

  it("assesses scripts, and counts the unsupported features of its clients", async () => {
    const sql = "SELECT Name FROM Items;\nGO\nDBCC CHECKDB;\nDECLARE c CURSOR FOR SELECT 1";
    type Assessment = { readonly statements: number; readonly findings: readonly Record<string, unknown>[] };
    const { json } = expectStatus(await platform.rest.post<Assessment>(path("/tsql/assess"), { sql }), 200);
    expect(json.statements).toBe(3);
    expect(json.findings.map(({ line, feature, verdict }) => [line, feature, verdict])).toEqual([
      [1, "SELECT", "supported"],
      [3, "DBCC", "unsupported"],
      [4, "cursors", "limited"],
    ]);
    // A character of three bytes: the limit is one of bytes.
    const long = await platform.rest.post<ProblemJson>(path("/tsql/assess"), { sql: "\u20ac".repeat(100_000) });
    expect(expectStatus(long, 400).text).toContain("262144 bytes");
    const query = `/audit-log?action=script.assess&object=${erp.service.id}`;
    expect(expectStatus(await platform.rest.get(query), 200).text).not.toContain("CHECKDB");

    type Unsupported = { readonly features: readonly { readonly feature: string; readonly count: number }[] };
    const counted = async () =>
      expectStatus(await platform.rest.get<Unsupported>(path("/tsql/unsupported")), 200).json.features.find(
        ({ feature }) => feature === "DBCC",
      )?.count ?? 0;
    const before = await counted();
    expect((await batch("DBCC CHECKDB")).errors).toEqual([40510]);
    expect(await counted()).toBe(before + 1);
  });

  it("has metrics of its front end beside those of PostgreSQL", async () => {
    const names = ["tds_connections", "tds_batches_per_second", "tds_errors_per_second", "tds_cache_hit_rate"];
    const query = [...names, "pg_connections"].map((name) => `metric=${name}`).join("&");
    type Series = { readonly metric: string; readonly points: readonly (readonly [number, number])[] };
    const client = await open();
    await waitUntil("each metric has a sample, and the session is counted", async () => {
      await client.batch("SELECT 1 AS cached");
      const found = await platform.rest.get<{ series: readonly Series[] }>(path(`/metrics?${query}&period=1h`));
      const { series } = expectStatus(found, 200).json;
      const sampled = new Map(series.filter(({ points }) => points.length > 0).map((each) => [each.metric, each]));
      return sampled.size === 5 && (sampled.get("tds_connections")?.points.at(-1)?.[1] ?? 0) > 0;
    });
    await client.close();
  });

  it("loses only sessions when the front end is killed, and starts it again", async () => {
    const client = await open();
    await client.batch("BEGIN TRAN; INSERT INTO Items (Name) VALUES ('lost')");
    const before = processes();
    killImmediately(before?.tds ?? 0);
    await expect(client.batch("SELECT 1 AS one")).rejects.toThrow();
    const count = () => batch("SELECT COUNT(*) AS n FROM Items").catch(() => undefined);
    const found = await waitUntil("clients sign in again", count);
    expect(found.sets).toEqual([[{ n: 3 }]]);
    expect(processes()?.engine).toBe(before?.engine);
    expect(processes()?.tds).not.toBe(before?.tds);
  });

  it("ends the sessions of addresses that leave the allow-list", async () => {
    const client = await open();
    const ended = new Promise((resolve) => client.connection.once("end", resolve));
    expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["10.99.0.0/16"] }), 200);
    await ended;
    await expect(open()).rejects.toThrow();
    expectStatus(await platform.rest.patch(path(), { allowed_cidrs: ["127.0.0.0/8"] }), 200);
    await waitUntil("clients sign in again", () => batch("SELECT 1 AS one").catch(() => undefined));
  });
});
