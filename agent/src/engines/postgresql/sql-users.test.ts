import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
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
  });
