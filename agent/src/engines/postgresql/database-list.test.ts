import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { leaveInvalid } from "@holdfast/testing/engines/invalid-database.ts";
import { readActivity } from "./activity-checks.ts";
import { type DatabaseList, inEachDatabase, listDatabases } from "./database-list.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { platform } from "./layout.ts";
import { createQueueSessions } from "./queue/queue-sessions.ts";
import { createQueueMaintenance } from "./queue/queue-maintenance.ts";
import { openSession, type OpenSession, withSession } from "./session.ts";

/** Files that read pg_database, and the purpose; none opens sessions by what it reads. */
// biome-ignore format: a table, aligned so that it reads as one
const readers: Readonly<Record<string, string>> = {
  "activity-checks.ts":    "the age of transaction ids",
  "backup/base-backup.ts": "the size of all data",
  "collations.ts":         "versions of collations; sessions use the list",
  "data-size.ts":          "the size of all data",
  "database-list.ts":      "the list itself",
  "databases.ts":          "databases as users see them",
  "metrics.ts":            "the age of transaction ids",
  "platform-sql.ts":       "the locale provider of template0",
  "preload-settings.ts":   "names of databases with stored settings",
  "query-stats.ts":        "names of databases by OID",
  "queue/delete-queue.ts": "the OID of the session's own database",
  "backup/detach-copy.ts": "the OID of the session's own database",
  "upgrade/check.ts":      "databases that prevent an upgrade",
  "upgrade/contents.ts":   "the list in single-user mode, by the same condition",
  "upgrade/upgrade.ts":    "the database that initdb creates",
  "users.ts":              "databases that a role has objects in; sessions use the list",
};

describe("sources of the agent", () => {
  const root = join(import.meta.dirname, "..");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && !path.endsWith(".test.ts"),
  );

  it("read pg_database only in the listed files", () => {
    const reading = files.filter((path) => /\b(FROM|JOIN|UPDATE)\s+(pg_catalog\.)?pg_database\b/i.test(textOf(path)));
    const expected = Object.keys(readers).map((path) => `postgresql/${path}`);
    expect(reading.toSorted()).toEqual(expected.toSorted());
  });

  it("use no condition of their own for databases that accept sessions", () => {
    const judging = files.filter((path) => /\bdatallowconn\b|\bdatconnlimit\b/.test(textOf(path)));
    expect(judging).toEqual(["postgresql/database-list.ts"]);
  });

  function textOf(path: string): string {
    return readFileSync(join(root, path), "utf8");
  }
});

const empty: DatabaseList = { ready: [], templates: [], closed: [], invalid: [], limited: [] };

describe("work in each database", () => {
  const refused = (code: string) => Object.assign(new Error("no"), { code });

  it.each(["3D000", "55000"])("skips a database that is no longer ready (%s)", async (code) => {
    const lists = [
      ["a", "b", "c"],
      ["a", "c"],
    ].map((ready) => ({ ...empty, ready }));
    const work = async (name: string) => (name === "b" ? Promise.reject(refused(code)) : name);
    expect(await inEachDatabase(async () => lists.shift() ?? empty, work)).toEqual(["a", "c"]);
    expect(await inEachDatabase(async () => empty, work, ["c", "b"])).toEqual(["c"]);
  });

  it.each([
    ["a database that is still ready", "55000"],
    ["another failure", "42501"],
  ])("ends with %s", async (_, code) => {
    const work = async () => Promise.reject(refused(code));
    await expect(inEachDatabase(async () => ({ ...empty, ready: ["a"] }), work)).rejects.toThrow("no");
  });
});

describe.skipIf(!hasEngine("postgresql", "17"))("an engine with databases that refuse sessions", () => {
  let machine: EngineMachine;
  let session: OpenSession;
  beforeAll(async () => {
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17");
    await machine.bringUp();
    session = await openSession(machine.instance, {}, AbortSignal.timeout(120_000));
    for (const statement of [
      "CREATE DATABASE shut",
      "ALTER DATABASE shut ALLOW_CONNECTIONS false",
      "CREATE DATABASE pattern IS_TEMPLATE true",
      `CREATE DATABASE sorted TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C.UTF-8'`,
    ])
      await session.rows(statement);
    const { users } = machine.driver;
    const user = { username: "leaver", role: "readwrite", verifier: scramVerifier("p") };
    await users?.put(machine.instance, { $typeName: "holdfast.agent.v1.EngineUser", ...user }, machine.signal);
    const own = "CREATE TABLE public.own (); ALTER TABLE public.own OWNER TO leaver";
    await leaveInvalid(
      { query: async (statement) => ({ rows: await session.rows<object>(statement) }) },
      "halfway",
      () => withSession(machine.instance, machine.signal, (there) => there.rows(own), { database: "halfway" }),
    );
  }, 60_000);
  afterAll(async () => {
    session?.close();
    await machine?.remove();
  });

  const { signal } = new AbortController();
  const check = async () => {
    const { checks } = await machine.driver.observe(machine.instance, machine.signal);
    return checks.find(({ name }) => name === "databases");
  };

  it("lists each database with its state", async () => {
    expect(await listDatabases(session)).toEqual({
      ready: ["defaultdb", platform, "pattern", "postgres", "sorted", "template1"],
      templates: ["pattern", "template1"],
      closed: ["shut"],
      invalid: ["halfway"],
      limited: [],
    });
    const listed = await machine.driver.databases?.list(machine.instance, signal);
    expect(listed?.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "defaultdb ready",
      "halfway invalid",
      "postgres ready",
      "shut closed",
      "sorted ready",
    ]);
  });

  it("still reports collations, queues, upgrade obstacles and transaction ids", async () => {
    const { driver, instance } = machine;
    expect((await driver.collations?.uses(instance, machine.signal))?.map(({ database }) => database)).toEqual([
      "sorted",
    ]);
    expect(await createQueueMaintenance(createQueueSessions()).databases(instance, machine.signal)).toEqual([]);
    const removed = (database: string) => driver.queues?.remove(instance, { database, id: "q" }, machine.signal);
    expect(await removed("halfway")).toEqual({ deleted: true, purged: 0 });
    await expect(removed("shut")).rejects.toThrow("not currently accepting connections");
    const obstacles = await driver.upgrade?.check(instance, "18", machine.signal);
    expect(obstacles?.filter(({ code }) => code !== "no_room")).toEqual([
      { code: "closed_databases", message: expect.stringContaining("shut") as string },
      { code: "invalid_databases", message: expect.stringContaining("halfway") as string },
    ]);
    expect((await readActivity(session)).idDatabase).not.toBe("halfway");
    expect((await driver.metrics?.read(instance, machine.signal))?.gauges).toHaveProperty("pg_xid_age_percent");
  });

  it("is degraded while a database admits no users", async () => {
    await session.rows("ALTER DATABASE defaultdb CONNECTION LIMIT 0");
    expect(await check()).toMatchObject({
      status: "degraded",
      reason: expect.stringMatching(/halfway is invalid.*Database defaultdb has CONNECTION LIMIT 0/) as string,
    });
    await session.rows("ALTER DATABASE defaultdb CONNECTION LIMIT -1");
    expect((await check())?.reason).not.toContain("CONNECTION LIMIT");
  });

  it("is degraded until an invalid database is dropped, which its owner cannot precede", async () => {
    const { driver, instance } = machine;
    expect(await check()).toMatchObject({
      status: "degraded",
      reason: "Database halfway is invalid: its DROP DATABASE was interrupted, and data are missing. Drop it.",
    });
    await expect(driver.users?.drop(instance, "leaver", machine.signal)).rejects.toThrow(
      "leaver owns objects in databases that are invalid: halfway. Drop the databases first.",
    );
    expect(await driver.databases?.drop(instance, "halfway", machine.signal)).toEqual({ existed: true });
    expect(await check()).toEqual({ name: "databases", status: "healthy", reason: "" });
    expect(await driver.users?.drop(instance, "leaver", machine.signal)).toEqual({ existed: true });
  });
});
