import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Connection, RowDataPacket } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createMysqlDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

/** More sessions than blocks of 1 MiB in the memory of temporary tables. */
const count = 120;

describe.skipIf(skip !== undefined)("temporary tables of mysql 9.7", () => {
  let machine: EngineMachine;
  const sessions: Connection[] = [];

  beforeAll(async () => {
    const users = [
      create(EngineUserSchema, { username: "app_user", role: "admin", verifier: mysqlVerifier("secret") }),
    ];
    const parameters = { max_connections: "200" };
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users, parameters });
    await machine.bringUp();
    for (let opened = 0; opened < count; opened += 1)
      sessions.push(await connectMysql(machine, { user: "app_user", password: "secret" }));
    await sessions[0]?.query("CREATE TABLE defaultdb.twice (n INT PRIMARY KEY)");
    await sessions[0]?.query("INSERT INTO defaultdb.twice VALUES (1), (2), (3)");
  });
  afterAll(async () => {
    for (const session of sessions) session.destroy();
    await machine?.remove();
  });

  it.each([
    [
      "recursive",
      "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT COUNT(*) AS found FROM r",
      5,
    ],
    [
      "read twice",
      "WITH c AS (SELECT DISTINCT n FROM defaultdb.twice) SELECT COUNT(*) AS found FROM c a JOIN c b USING (n)",
      3,
    ],
    [
      "larger than its share of memory",
      `WITH RECURSIVE r (n, t) AS (SELECT 1, REPEAT('x', 100000) UNION ALL SELECT n + 1, t FROM r WHERE n < 300)
       SELECT COUNT(*) AS found FROM r a JOIN r b USING (n)`,
      300,
    ],
  ])("exist in every session if they are %s", async (_, sql, expected) => {
    for (const [index, session] of sessions.entries()) {
      if (expected === 300 && index % 20 > 0) continue;
      const [rows] = await session.query<RowDataPacket[]>(sql);
      expect(rows[0]?.["found"]).toBe(expected);
    }
  });

  it("leave the query console usable", async () => {
    const { driver, instance, signal } = machine;
    const names = { database: "defaultdb", functions: [], types: [], qualified: [], relations: [] };
    const limits = { rowsMax: 10, bytesMax: 1 << 20, timeoutMs: 5_000 };
    const answer = await driver.readOnlyQuery?.run(instance, { ...names, ...limits, sql: "SELECT 1" }, signal);
    expect(answer).toMatchObject({ rows: "[[1]]" });
  });
});
