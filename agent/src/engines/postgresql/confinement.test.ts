import { create } from "@bufbuild/protobuf";
import { postgresqlExtensions } from "@holdfast/common/engine-catalog/postgresql-extensions.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { forbidden, containedStatements } from "@holdfast/testing/engines/confinement-statements.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const roles = { app_user: "admin", ops: "admin", writer: "readwrite", reader: "readonly" } as const;
type User = keyof typeof roles;

describe.each(["17", "18"])("users of postgresql %s", (version) => {
  describe.skipIf(!hasEngine("postgresql", version))("are confined", () => {
    let machine: EngineMachine;
    const clients = new Map<User, pg.Client>();
    const as = (user: User): pg.Client => {
      const client = clients.get(user);
      if (client === undefined) throw new Error(`${user} is not connected`);
      return client;
    };
    const enter = (user: string, database = "defaultdb") =>
      connectPostgresql(machine, { user, password: "secret", database });

    beforeAll(async () => {
      const users = Object.entries(roles).map(([username, role]) =>
        create(EngineUserSchema, { username, role, verifier: scramVerifier("secret") }),
      );
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users,
      });
      await machine.bringUp();
      for (const user of Object.keys(roles) as User[]) clients.set(user, await enter(user));
    });
    afterAll(async () => {
      for (const client of clients.values()) await client.end();
      await machine?.remove();
    });

    /** No role except the platform's has more privileges than it should. */
    async function expectConfined(): Promise<void> {
      const rows = await withSession(machine.instance, machine.signal, (session) =>
        session.rows(
          `SELECT rolname FROM pg_roles WHERE (rolsuper OR rolreplication OR rolbypassrls) AND rolname <> 'holdfast'
           UNION ALL SELECT m.member::regrole::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
             WHERE g.rolname IN ('holdfast', 'pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files',
               'pg_read_all_data', 'pg_write_all_data', 'pg_create_subscription', 'pg_use_reserved_connections')`,
        ),
      );
      expect(rows).toEqual([]);
    }

    it.each(Object.keys(roles) as User[])("%s cannot leave the database engine", async (user) => {
      const client = as(user);
      await client.query("SET default_transaction_read_only = off");
      for (const statement of forbidden) {
        const answer = await client.query(statement).then(
          () => "worked",
          ({ code }: { code: string }) => code,
        );
        // Forbidden, unavailable in this build, or without what it requires.
        expect(["42501", "0A000", "42704"], statement).toContain(answer);
      }
      await expectConfined();
    });

    it.each(Object.keys(roles) as User[])(
      "%s enters neither the platform's database nor any as the platform",
      async (user) => {
        await expect(enter(user, "holdfast")).rejects.toThrow("pg_hba");
        await expect(enter("holdfast")).rejects.toThrow("pg_hba");
        await expect(enter("holdfast_admin")).rejects.toThrow("password authentication failed");
        await expect(as(user).query("SELECT * FROM holdfast.heartbeat")).rejects.toThrow("permission denied");
      },
    );

    it.each(Object.keys(roles) as User[])(
      "%s gets none of PostgreSQL's own roles, but monitoring for admins",
      async (user) => {
        const { rows } = await as(user).query<{ rolname: string; has: boolean }>(
          "SELECT rolname, pg_has_role(current_user, oid, 'MEMBER') AS has FROM pg_roles WHERE rolname ~ '^pg_' AND rolname <> 'pg_database_owner'",
        );
        const has = rows
          .filter((row) => row.has)
          .map(({ rolname }) => rolname)
          .sort();
        const monitoring = ["pg_monitor", "pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables"];
        expect(has).toEqual(roles[user] === "admin" ? monitoring : []);
        for (const { rolname } of rows) {
          await expect(as(user).query(`GRANT ${rolname} TO writer`), rolname).rejects.toThrow("permission denied");
          if (!has.includes(rolname))
            await expect(as(user).query(`SET ROLE ${rolname}`), rolname).rejects.toThrow("permission denied");
        }
        await as(user).query("RESET ROLE");
      },
    );

    it("can create exactly the listed extensions", async () => {
      const { rows } = await as("app_user").query<{ name: string; isThere: boolean }>(
        'SELECT name, installed_version IS NOT NULL AS "isThere" FROM pg_available_extensions ORDER BY name',
      );
      // Before any exists, since an existing one is refused to every user.
      for (const { name } of rows.filter(({ isThere }) => !isThere))
        await expect(as("reader").query(`CREATE EXTENSION "${name}"`), name).rejects.toThrow(
          /read-only|permission denied|required extension/,
        );
      const created: string[] = [];
      for (const { name } of rows) {
        await as("app_user")
          .query(`CREATE EXTENSION IF NOT EXISTS "${name}" CASCADE`)
          .then(
            () => created.push(name),
            () => undefined,
          );
      }
      const upgraded = postgresqlExtensions.filter((name) => rows.some((row) => row.name === name));
      expect(created).toEqual(
        [...upgraded].sort((a, b) => rows.findIndex((r) => r.name === a) - rows.findIndex((r) => r.name === b)),
      );
      expect(upgraded).toEqual(postgresqlExtensions);
      const languages = await as("app_user").query(
        "SELECT lanname FROM pg_language WHERE NOT lanpltrusted AND lanname NOT IN ('c', 'internal')",
      );
      expect(languages.rows).toEqual([]);
      await expectConfined();
    });

    it("cannot make the platform run their code", async () => {
      const client = await enter("app_user");
      for (const statement of containedStatements) await client.query(statement).catch(() => undefined);
      await client.end();
      const { driver, instance, signal } = machine;
      await driver.users?.put(
        instance,
        create(EngineUserSchema, { username: "leaver", role: "readwrite", verifier: scramVerifier("secret") }),
        signal,
      );
      const leaver = await connectPostgresql(machine, { user: "leaver", password: "secret" });
      await leaver.query("CREATE TEMP TABLE of_mine (a int)").catch(() => undefined);
      await as("app_user").query("CREATE SCHEMA for_leaver; GRANT ALL ON SCHEMA for_leaver TO leaver");
      expect(await driver.users?.drop(instance, "leaver", signal)).toEqual({ existed: true });
      await driver.observe(instance, signal);
      await driver.databases?.list(instance, signal);
      await expectConfined();
      for (const setting of ["search_path", "role", "default_transaction_read_only", "standard_conforming_strings"]) {
        await as("app_user").query(`ALTER DATABASE defaultdb RESET ${setting}`);
      }
    });

    it("shut out nobody for long by a library that every session must load", async () => {
      for (const [change, shutOut] of [
        ["DATABASE defaultdb", "writer"],
        ["ROLE ops", "ops"],
        ["ROLE app_user IN DATABASE defaultdb", "app_user"],
      ] as const) {
        const owner = as(shutOut === "ops" ? "ops" : "app_user");
        await owner.query(`ALTER ${change} SET local_preload_libraries = 'x'`);
        await expect(enter(shutOut), change).rejects.toThrow("could not access file");
        await machine.driver.observe(machine.instance, machine.signal);
        await (await enter(shutOut)).end();
      }
    });

    it("of role admin may do what owners do, those of other roles what their role allows", async () => {
      const admin = await enter("app_user");
      await admin.query("CREATE SCHEMA shop; CREATE TABLE shop.orders (id serial PRIMARY KEY, note text)");
      await admin.query("CREATE VIEW shop.notes AS SELECT note FROM shop.orders");
      await admin.query("CREATE ROLE clerk LOGIN PASSWORD 'x' IN ROLE writer");
      await admin.query("CREATE DATABASE second");
      await admin.query("CREATE DATABASE third TEMPLATE template0");
      await as("writer").query("INSERT INTO shop.orders (note) VALUES ('one'); UPDATE shop.orders SET note = 'two'");
      await expect(as("writer").query("CREATE TABLE shop.mine (a int)")).rejects.toThrow("permission denied");
      await expect(as("writer").query("DROP TABLE shop.orders")).rejects.toThrow("must be owner");
      expect((await as("reader").query("SELECT note FROM shop.notes")).rows).toEqual([{ note: "two" }]);
      await as("reader").query("SET default_transaction_read_only = off");
      await expect(as("reader").query("DELETE FROM shop.orders")).rejects.toThrow("permission denied");
      await expect(as("reader").query("SELECT nextval('shop.orders_id_seq')")).rejects.toThrow("permission denied");
      await as("ops").query("ALTER TABLE shop.orders ADD COLUMN by text; CREATE TABLE shop.of_ops (a int)");
      for (const database of ["second", "third"]) {
        const owner = await enter("app_user", database);
        await owner.query("CREATE TABLE made (a int)");
        await owner.end();
        const reader = await enter("reader", database);
        await reader.query("SELECT * FROM made");
        await reader.end();
      }
      const victim = await enter("writer");
      const over = new Promise((resolve) => victim.once("end", resolve));
      await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'writer' AND query = ''",
      );
      await over;
      const { users, databases } = machine.driver;
      const listed = await users?.list(machine.instance, machine.signal);
      expect(listed?.map(({ username, role }) => `${username} ${role}`)).toContain("clerk custom");
      await expect(databases?.drop(machine.instance, "defaultdb", machine.signal)).rejects.toThrow("cannot be dropped");
      const open = await enter("app_user", "second");
      expect(await databases?.drop(machine.instance, "second", machine.signal)).toEqual({ existed: true });
      expect(await databases?.drop(machine.instance, "second", machine.signal)).toEqual({ existed: false });
      expect(await databases?.drop(machine.instance, "holdfast", machine.signal)).toEqual({ existed: false });
      const newDatabase = { name: "fresh", owner: "app_user", mark: "" };
      expect(await databases?.create(machine.instance, newDatabase, machine.signal)).toEqual({ created: true });
      expect(await databases?.create(machine.instance, newDatabase, machine.signal)).toEqual({
        created: false,
      });
      await open.end().catch(() => undefined);
      await admin.query("ALTER ROLE app_user PASSWORD 'changed'");
      expect(await users?.check(machine.instance, "app_user", scramVerifier("secret"), machine.signal)).toEqual({
        exists: true,
        matches: false,
      });
      // The default user becomes the owner of an admin's objects.
      expect(await users?.drop(machine.instance, "ops", machine.signal)).toEqual({ existed: true });
      expect((await admin.query("SELECT tableowner FROM pg_tables WHERE tablename = 'of_ops'")).rows).toEqual([
        { tableowner: "app_user" },
      ]);
      await admin.end();
    });
  });
});
