import { describe, expect, it } from "vitest";
import { openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import type { PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { login, type PostgresqlUnderTest } from "./postgresql-under-test.ts";

interface UserJson {
  readonly username: string;
  readonly role: string;
  readonly managed: boolean;
  readonly replication: boolean;
}

/** Objects inside the engine, by the API and in SQL. */
export function userAndDatabaseCases(fixture: PostgresqlUnderTest): void {
  describe("users", () => {
    it("have the privileges of their roles, also on objects that others create later", async () => {
      const writer = await fixture.createUser("writer", "readwrite");
      const reader = await fixture.createUser("reader", "readonly");
      const admin = await fixture.createUser("boss", "admin");
      const as = (user: string, password: string, sql: string) =>
        queryOnce<Record<string, unknown>>(fixture.platform, fixture.main.connection, login(user, password), sql);

      await as("boss", admin, "CREATE TABLE notes (id int PRIMARY KEY, text text)");
      await as("writer", writer, "INSERT INTO notes VALUES (1, 'one')");
      expect(await as("reader", reader, "SELECT text FROM notes")).toEqual([{ text: "one" }]);
      // Read-only by default, and by privileges when the session disables that.
      const insert = "INSERT INTO notes VALUES (2, 'two')";
      await expect(as("reader", reader, insert)).rejects.toMatchObject({ code: "25006" });
      await expect(as("reader", reader, `BEGIN READ WRITE; ${insert}`)).rejects.toMatchObject({
        code: "42501",
      });
      await expect(as("writer", writer, "CREATE ROLE other")).rejects.toMatchObject({ code: "42501" });
      const ddl = "BEGIN READ WRITE; CREATE TABLE mine (id int)";
      await expect(as("reader", reader, ddl)).rejects.toMatchObject({ code: "42501" });
    });

    it("lists users created in SQL too, without their passwords", async () => {
      const { connection, password } = fixture.main;
      await queryOnce(
        fixture.platform,
        connection,
        { password },
        "CREATE ROLE made_in_sql LOGIN PASSWORD 'chosen-in-sql'",
      );
      const { json } = await fixture.platform.rest.get<PageJson<"users", UserJson>>(fixture.path("/database-users"));
      expect(json.users).toContainEqual(expect.objectContaining({ username: "made_in_sql", managed: false }));
      expect(json.users).toContainEqual(
        expect.objectContaining({ username: "app_user", role: "admin", managed: true }),
      );
      const names = json.users.map(({ username }) => username);
      expect(names).not.toContain("postgres");
      const reveal = await fixture.platform.rest.post<ProblemJson>(
        fixture.path("/database-users/made_in_sql/reveal-password"),
      );
      expect(expectStatus(reveal, 409).json.code).toBe("password_not_known");
    });

    it("come in pages that together contain all", async () => {
      const seen: string[] = [];
      let cursor = "";
      do {
        const page = await fixture.platform.rest.get<PageJson<"users", UserJson>>(
          fixture.path(`/database-users?limit=2${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`),
        );
        expect(page.json.users.length).toBeLessThanOrEqual(2);
        seen.push(...page.json.users.map(({ username }) => username));
        cursor = page.json.next_cursor ?? "";
      } while (cursor !== "");
      const { json } = await fixture.platform.rest.get<PageJson<"users", UserJson>>(
        fixture.path("/database-users?limit=200"),
      );
      expect(seen).toEqual(json.users.map(({ username }) => username));
    });

    it("whose password was changed in SQL are not revealed until it is reset", async () => {
      const before = await fixture.createUser("changed", "readwrite");
      await queryOnce(
        fixture.platform,
        fixture.main.connection,
        login("changed", before),
        "ALTER ROLE changed PASSWORD 'chosen-by-the-user'",
      );
      const reveal = await fixture.platform.rest.post<ProblemJson>(
        fixture.path("/database-users/changed/reveal-password"),
      );
      expect(expectStatus(reveal, 409).json.code).toBe("password_not_known");
      const reset = await fixture.platform.rest.post<{ password: string }>(
        fixture.path("/database-users/changed/reset-password"),
      );
      const after = expectStatus(reset, 200).json.password;
      expect(await fixture.passwordOf("changed")).toBe(after);
      await queryOnce(fixture.platform, fixture.main.connection, login("changed", after), "SELECT 1");
      const old = openPostgresql(fixture.platform, fixture.main.connection, login("changed", "chosen-by-the-user"));
      await expect(old).rejects.toMatchObject({ code: "28P01" });
    });

    it("get and lose the attribute REPLICATION", async () => {
      const users = fixture.path("/database-users");
      const body = { username: "debezium", role: "readonly", replication: true };
      const created = await fixture.platform.rest.post<UserJson>(users, body);
      expect(expectStatus(created, 201).json).toMatchObject({ role: "readonly", replication: true });
      const attribute = async () => {
        const sql = "SELECT rolreplication FROM pg_roles WHERE rolname = 'debezium'";
        return (
          await queryOnce(fixture.platform, fixture.main.connection, { password: fixture.main.password }, sql)
        )[0];
      };
      expect(await attribute()).toEqual({ rolreplication: true });
      const change = (replication?: boolean) =>
        fixture.platform.rest.patch<UserJson>(`${users}/debezium`, replication === undefined ? {} : { replication });
      expect(expectStatus(await change(), 200).json.replication).toBe(true);
      expect(expectStatus(await change(false), 200).json).toMatchObject({ managed: true, replication: false });
      expect(await attribute()).toEqual({ rolreplication: false });
      expect((await fixture.platform.rest.get<UserJson>(`${users}/debezium`)).json.replication).toBe(false);
      expect((await fixture.platform.rest.patch(`${users}/absent`, { replication: true })).status).toBe(404);
      expectStatus(await fixture.platform.rest.delete(`${users}/debezium`), 204);
    });

    it("that were created in SQL get a new password, which is not stored", async () => {
      const { connection, password } = fixture.main;
      await queryOnce(fixture.platform, connection, { password }, "CREATE ROLE own_rights LOGIN");
      const path = fixture.path("/database-users/own_rights");
      const reset = await fixture.platform.rest.post<{ password: string }>(`${path}/reset-password`);
      const after = expectStatus(reset, 200).json.password;
      await queryOnce(fixture.platform, connection, login("own_rights", after), "SELECT 1");
      expect((await fixture.platform.rest.get<UserJson>(path)).json).toMatchObject({ role: "custom", managed: false });
      expect((await fixture.platform.rest.post(`${path}/reveal-password`)).status).toBe(409);
    });

    it("can be read one by one, created once, and deleted, except the service's own", async () => {
      await fixture.createUser("brief", "readonly");
      const pending = await fixture.platform.rest.get<UserJson>(fixture.path("/database-users/brief"));
      expect(expectStatus(pending, 200).json).toMatchObject({ username: "brief", role: "readonly", managed: true });
      const duplicate = await fixture.platform.rest.post<ProblemJson>(fixture.path("/database-users"), {
        username: "brief",
        role: "admin",
      });
      expect(expectStatus(duplicate, 409).json.code).toBe("name_taken");
      expectStatus(await fixture.platform.rest.delete(fixture.path("/database-users/brief")), 204);
      expect((await fixture.platform.rest.get(fixture.path("/database-users/brief"))).status).toBe(404);
      expect((await fixture.platform.rest.delete(fixture.path("/database-users/brief"))).status).toBe(404);
      expect((await fixture.platform.rest.delete(fixture.path("/database-users/app_user"))).status).toBe(422);
    });
  });

  describe("databases", () => {
    it("are created, listed with those created in SQL, and dropped with their sessions", async () => {
      const { connection, password } = fixture.main;
      expectStatus(await fixture.platform.rest.post(fixture.path("/databases"), { name: "orders" }), 201);
      await queryOnce(fixture.platform, connection, { password }, "CREATE DATABASE by_sql");
      const { json } = await fixture.platform.rest.get<PageJson<"databases", { name: string; owner: string }>>(
        fixture.path("/databases"),
      );
      expect(json.databases.map(({ name }) => name)).toEqual(["by_sql", "defaultdb", "orders", "postgres"]);
      const duplicate = await fixture.platform.rest.post<ProblemJson>(fixture.path("/databases"), { name: "orders" });
      expect(expectStatus(duplicate, 409).json.code).toBe("name_taken");

      const session = await openPostgresql(fixture.platform, connection, login("app_user", password, "orders"));
      await session.query("CREATE TABLE t (id int)");
      expectStatus(await fixture.platform.rest.delete(fixture.path("/databases/orders")), 204);
      await expect(session.query("SELECT 1")).rejects.toThrow(/terminat|closed|not queryable/);
      await session.end().catch(() => undefined);
      expect((await fixture.platform.rest.delete(fixture.path("/databases/orders"))).status).toBe(404);
      await expect(
        openPostgresql(fixture.platform, connection, login("app_user", password, "orders")),
      ).rejects.toMatchObject({
        code: "3D000",
      });
    });
  });

  describe("a database with an owner", () => {
    it("is the owner's, and needs a user of the service", async () => {
      const password = await fixture.createUser("analyst", "readwrite");
      const databases = fixture.path("/databases");
      const created = await fixture.platform.rest.post<{ owner: string }>(databases, {
        name: "reports",
        owner: "analyst",
      });
      expect(expectStatus(created, 201).json.owner).toBe("analyst");
      const client = await openPostgresql(
        fixture.platform,
        fixture.main.connection,
        login("analyst", password, "reports"),
      );
      await client.query("CREATE TABLE t (id int)");
      await client.end();
      const refused = await fixture.platform.rest.post<ProblemJson>(databases, { name: "other", owner: "nobody" });
      expect(expectStatus(refused, 400).json.errors).toMatchObject([{ field: "owner", code: "unknown_user" }]);
      expectStatus(await fixture.platform.rest.delete(`${databases}/reports`), 204);
    });
  });

  describe("the default user", () => {
    it("may create roles, databases and listed extensions, and is no superuser", async () => {
      const query = (sql: string) =>
        queryOnce(fixture.platform, fixture.main.connection, { password: fixture.main.password }, sql);
      await query("CREATE ROLE helper NOLOGIN");
      await query("CREATE EXTENSION IF NOT EXISTS pgcrypto");
      expect(await query("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")).toEqual([{ rolsuper: false }]);
      await expect(query("CREATE EXTENSION adminpack")).rejects.toThrow("not available");
      await expect(query("COPY (SELECT 1) TO PROGRAM 'id'")).rejects.toMatchObject({ code: "42501" });
      await expect(query("SELECT pg_read_file('/etc/passwd')")).rejects.toMatchObject({ code: "42501" });
      await expect(query("ALTER SYSTEM SET work_mem = '1GB'")).rejects.toMatchObject({ code: "0A000" });
    });
  });
}
