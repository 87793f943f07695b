import { create } from "@bufbuild/protobuf";
import { EngineUserSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const statements = [
  "CREATE ROLE worker LOGIN CONNECTION LIMIT 3 VALID UNTIL '2099-01-01'; CREATE TABLE jobs (id int); GRANT SELECT ON jobs TO worker",
  "CREATE ROLE \"Mixed Case\" LOGIN PASSWORD 'known' NOINHERIT",
  "CREATE ROLE nobody NOLOGIN",
];

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`users of PostgreSQL ${version} that were created in SQL`, () => {
    let machine: EngineMachine;
    const user = (username: string, password: string) =>
      create(EngineUserSchema, { username, verifier: scramVerifier(password) });
    const reset = (username: string, password: string) =>
      machine.driver.users?.put(machine.instance, user(username, password), machine.signal, { expected: "present" });
    const asUser = async (username: string, password: string, sql: string) => {
      const client = await connectPostgresql(machine, { user: username, password });
      try {
        return (await client.query(sql)).rows;
      } finally {
        await client.end();
      }
    };
    const rolesNow = () =>
      withSession(machine.instance, machine.signal, (session) =>
        session.rows(
          `SELECT rolname, rolinherit, rolcanlogin, rolreplication, rolconnlimit, rolvaliduntil::text FROM pg_roles
           WHERE rolname IN ('worker', 'Mixed Case') ORDER BY 1`,
        ),
      );

    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier("secret") })],
      });
      await machine.bringUp();
      for (const statement of statements) await asUser("app_user", "secret", statement);
    });
    afterAll(() => machine?.remove());

    it("get a new password, and keep their privileges and attributes", async () => {
      const before = await rolesNow();
      for (const username of ["worker", "Mixed Case"]) {
        expect(await reset(username, "first")).toEqual({ changed: true, role: "custom" });
        expect(await reset(username, "first")).toEqual({ changed: false, role: "custom" });
        expect(await asUser(username, "first", "SELECT current_user AS name")).toEqual([{ name: username }]);
      }
      await expect(asUser("Mixed Case", "known", "SELECT 1")).rejects.toMatchObject({ code: "28P01" });
      expect(await asUser("worker", "first", "SELECT id FROM jobs")).toEqual([]);
      expect(await rolesNow()).toEqual(before);
    });

    it("get none if they cannot sign in, or are the platform's", async () => {
      for (const name of ["nobody", "absent", "holdfast", "pg_monitor"])
        await expect(reset(name, "first"), name).rejects.toMatchObject({ code: "database_user_not_found" });
    });

    it("are listed, reset and dropped under a name that only begins like the platform's", async () => {
      await asUser("app_user", "secret", "CREATE ROLE holdfast_z LOGIN PASSWORD 'known'");
      await asUser("app_user", "secret", "CREATE DATABASE holdfast_z");
      const { users, databases } = machine.driver;
      const listed = await users?.list(machine.instance, machine.signal);
      expect(listed?.map(({ username }) => username)).toContain("holdfast_z");
      const all = await databases?.list(machine.instance, machine.signal);
      expect(all?.map(({ name }) => name)).toContain("holdfast_z");
      expect(await reset("holdfast_z", "first")).toEqual({ changed: true, role: "custom" });
      const { verifier } = user("", "first");
      const checked = await users?.check(machine.instance, "holdfast_z", verifier, machine.signal);
      expect(checked).toEqual({ exists: true, matches: true });
      expect(await users?.drop(machine.instance, "holdfast_z", machine.signal)).toEqual({ existed: true });
      expect(await databases?.drop(machine.instance, "holdfast_z", machine.signal)).toEqual({ existed: true });
      const again = users?.put(machine.instance, { ...user("holdfast_y", "x"), role: "readonly" }, machine.signal);
      await expect(again).rejects.toThrow("is reserved for the platform");
    });

    it("get no privilege of a role of the platform that is created under their name", async () => {
      await asUser("app_user", "secret", "CREATE ROLE holdfast_replica LOGIN PASSWORD 'known'");
      await asUser("app_user", "secret", "GRANT holdfast_replica TO app_user");
      await expect(asUser("holdfast_replica", "known", "SELECT 1")).rejects.toMatchObject({ code: "28000" });
      const client = await connectPostgresql(machine, { user: "app_user", password: "secret" });
      try {
        await client.query("SET ROLE holdfast_replica");
        const primaryNodeId = machine.instance.spec.nodeId;
        const members = [{ nodeId: primaryNodeId, number: 1, hostname: machine.serverName, address: "127.0.0.1" }];
        const replication = create(ReplicationSchema, { primaryNodeId, members, secret: "secret".repeat(9) });
        const { instance, driver } = machine;
        const spec = { ...instance.spec, replication };
        await driver.replication?.admit({ ...instance, spec }, machine.signal);
        const reading = client.query("SELECT pg_read_binary_file('PG_VERSION', 0, 1, true)");
        await expect(reading).rejects.toMatchObject({ code: "42501" });
        const can = "has_function_privilege('holdfast_replica', 'pg_read_binary_file(text)', 'EXECUTE') AS can";
        const rows = await withSession(instance, machine.signal, (session) => session.rows(`SELECT ${can}`));
        expect(rows).toEqual([{ can: true }]);
      } finally {
        await client.end();
      }
    });
  });
