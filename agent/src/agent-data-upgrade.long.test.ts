import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { hostileStatements } from "@holdfast/testing/engines/hostile-settings.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const password = "a-password-of-the-test";
const skipped = whyNoAgentMachine("postgresql", "18");
/** Steps at which the agent is killed; all of them only with `npm run faults -- --upgrades`. */
const steps = [
  "postgresql.scratch",
  "postgresql.scratch/data",
  "postgresql.upgrade",
  "postgresql.upgrade/pg_upgrade_output.d",
];
const killedAt = process.env["HOLDFAST_TEST_UPGRADES"] === "1" ? steps : steps.slice(-1);
const longMs = 180_000;

describe.skipIf(skipped !== undefined)(
  `data of PostgreSQL 17 under an agent with 18${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let machine: AgentMachine;
    let orderBefore: unknown[];

    beforeAll(async () => {
      machine = await startAgentMachine({
        engine: "postgresql",
        version: "18",
        spec: {
          version: "17",
          // pg_upgrade has several jobs.
          vcpu: 4,
          users: [{ username: "app_user", role: "admin", verifier: scramVerifier(password) }],
          databases: ["defaultdb"],
        },
      });
      expect((await machine.converge()).failure).toBeUndefined();
      await query("CREATE TABLE kept (n int PRIMARY KEY, words text)");
      await query("INSERT INTO kept SELECT n, repeat('word ', n % 50) FROM generate_series(1, 50000) AS n");
      await query("CREATE EXTENSION vector");
      await query("CREATE TABLE placed (at vector(3)); INSERT INTO placed VALUES ('[1,2,3]')");
      // The database `postgres` is missing, as in old services: the upgrade must drop the one that initdb creates.
      await query("DROP DATABASE postgres");
      await query("CREATE DATABASE second");
      await query("CREATE TABLE elsewhere AS SELECT 1 AS one", "second");
      await query("CREATE DATABASE hostile");
      await query("CREATE TABLE behind AS SELECT 1 AS one", "hostile");
      for (const statement of hostileStatements("hostile")) await query(statement);
    }, longMs);
    afterAll(() => machine?.remove());
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    async function query(sql: string, database = "defaultdb"): Promise<unknown[]> {
      const client = await connectPostgresql(machine.endpoint, { user: "app_user", password, database });
      try {
        return [await client.query({ text: sql, rowMode: "array" })].flat().flatMap(({ rows }) => rows.flat());
      } finally {
        await client.end();
      }
    }

    const dataDirectory = () => join(machine.directory, "data");
    const names = () =>
      readdirSync(dataDirectory())
        .filter((name) => name.startsWith("postgresql"))
        .sort();
    const createdAt = (name: string) =>
      statSync(join(dataDirectory(), name), { throwIfNoEntry: false })?.birthtimeMs ?? 0;
    const versionOf = (name: string) => readFileSync(join(dataDirectory(), name, "PG_VERSION"), "utf8").trim();
    const onCanary = (version: string) => machine.converge({ version, onCanary: true, allowedCidrs: [] });
    const admitted = (version: string) => machine.converge({ version, onCanary: false });
    const rows = () => query("SELECT count(*)::int, sum(length(words))::int FROM kept");
    const check = async () => {
      const input = { case: "checkEngineUpgrade", value: { version: "18" } } as const;
      const { output } = await machine.controller.perform({
        ...machine.header,
        lane: Lane.QUERY,
        class: TaskClass.QUICK,
        input,
      });
      return output.case === "checkEngineUpgrade" ? output.value.obstacles : undefined;
    };

    test("are checked for obstacles to an upgrade", async () => {
      expect(await check()).toEqual([]);
      await query("CREATE TABLE named (f regproc)", "second");
      await query("CREATE TABLE parent (a int NOT NULL); CREATE TABLE child (b int) INHERITS (parent)");
      await query("ALTER TABLE child ALTER a DROP NOT NULL").catch(() => undefined);
      const found = await check();
      expect(found?.map(({ code }) => code)).toContain("column_types");
      await query("CREATE VIEW slow AS SELECT query FROM pg_stat_statements");
      expect((await check())?.map(({ code }) => code)).toContain("statistics_views");
      await query("DROP VIEW slow");
      expect(found?.find(({ code }) => code === "column_types")?.message).toContain("named.f in second");
      await query("DROP TABLE named", "second");
      await query("DROP TABLE parent CASCADE");
      expect(await check()).toEqual([]);
    });

    /** Privileges, roles, settings and triggers, as users see them. */
    async function order(): Promise<unknown[]> {
      const shared = await query(
        `SELECT datname, datacl::text, datdba::regrole::text, datlocprovider::text FROM pg_database ORDER BY 1`,
      );
      const roles =
        await query(`SELECT rolname, rolsuper, rolcreatedb, rolcreaterole, rolcanlogin, rolconnlimit, rolconfig::text
        FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1`);
      const members = await query(
        `SELECT roleid::regrole::text, member::regrole::text, admin_option FROM pg_auth_members ORDER BY 1, 2`,
      );
      const inside = `SELECT (SELECT array_agg(evtname::text || evtenabled::text ORDER BY evtname)::text FROM pg_event_trigger),
        (SELECT array_agg(nspname::text || coalesce(nspacl::text, '') ORDER BY nspname)::text FROM pg_namespace WHERE nspname !~ '^pg_')`;
      return [
        shared,
        roles,
        members,
        await query(inside),
        await query(inside, "second"),
        await query("SHOW data_checksums"),
      ];
    }

    test("are not upgraded while clients are admitted", async () => {
      const { failure } = await admitted("18");
      expect(failure?.message).toContain("only while no client is admitted");
      expect([names(), versionOf("postgresql")]).toEqual([["postgresql"], "17"]);
    });

    test(
      "are complete after kills during their upgrade, with no client admitted before its end",
      async () => {
        for (const step of killedAt) {
          const startedAt = Date.now();
          void onCanary("18");
          await waitUntil(`a new ${step} is there`, () => createdAt(step) > startedAt, { everyMs: 5 });
          const { hellos } = machine.controller;
          const before = hellos.length;
          await machine.restart();
          await waitUntil("the agent is back", () => hellos.length > before);
          expect(versionOf("postgresql")).toBe("17");
        }
        expect((await onCanary("18")).failure).toBeUndefined();
        expect([names(), versionOf("postgresql"), versionOf("postgresql.17")]).toEqual([
          ["postgresql", "postgresql.17"],
          "18",
          "17",
        ]);
        await expect(rows()).rejects.toThrow("pg_hba.conf rejects connection");
      },
      longMs,
    );

    test(
      "are rolled back, and upgraded again",
      async () => {
        expect((await onCanary("17")).failure).toBeUndefined();
        expect([names(), versionOf("postgresql")]).toEqual([["postgresql"], "17"]);
        expect((await admitted("17")).failure).toBeUndefined();
        expect(await rows()).toEqual([50_000, 6_125_000]);
        orderBefore = await order();
        await query("INSERT INTO kept VALUES (0, 'later')");
        expect((await onCanary("18")).failure).toBeUndefined();
      },
      longMs,
    );

    test(
      "are complete once clients are admitted, and the old ones are removed",
      async () => {
        expect((await admitted("18")).failure).toBeUndefined();
        expect(names()).toEqual(["postgresql"]);
        expect(await query("SHOW server_version_num")).toEqual([expect.stringMatching(/^18/)]);
        expect(await rows()).toEqual([50_001, 6_125_005]);
        expect(await order()).toEqual(orderBefore);
        expect(await query("SELECT one FROM elsewhere", "second")).toEqual([1]);
        await query("ALTER DATABASE hostile RESET ALL");
        expect(await query("SELECT one FROM behind", "hostile")).toEqual([1]);
        expect(await query("SELECT at::text FROM placed")).toEqual(["[1,2,3]"]);
        expect(
          await query(
            "SELECT extversion = default_version FROM pg_extension JOIN pg_available_extensions ON name = extname",
          ),
        ).not.toContain(false);
        expect(await query("SELECT extowner::regrole::text FROM pg_extension WHERE extname = 'vector'")).toEqual([
          "app_user",
        ]);
        await query("DROP EXTENSION vector CASCADE");
        expect(await query("SELECT datname FROM pg_database ORDER BY 1")).toEqual([
          "defaultdb",
          "holdfast",
          "hostile",
          "second",
          "template0",
          "template1",
        ]);
        expect(await query("SELECT count(*)::int FROM pg_stats WHERE tablename = 'kept'")).toEqual([2]);
        await query("CREATE DATABASE third TEMPLATE template0");
        await query("CREATE TABLE made ()", "third");
        expect(await query("SELECT has_table_privilege('holdfast_readonly', 'made', 'SELECT')", "third")).toEqual([
          true,
        ]);
      },
      longMs,
    );

    test("are not rolled back once clients were admitted", async () => {
      const { failure } = await onCanary("17");
      expect(failure?.message).toContain("The data have the format of postgresql 18, which 17 does not read");
      expect((await admitted("18")).failure).toBeUndefined();
      expect(await rows()).toEqual([50_001, 6_125_005]);
    });
  },
);
