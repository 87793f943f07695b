import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { RowDataPacket } from "mysql2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createMysqlDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("running queries of mysql 9.7", () => {
  let machine: EngineMachine;

  beforeAll(async () => {
    const verifier = mysqlVerifier("secret");
    const users = [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })];
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users });
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  const enter = () => connectMysql(machine, { user: "app_user", password: "secret" });
  const running = async () =>
    (await machine.driver.sessions?.running(machine.instance, 10, machine.signal))?.queries ?? [];
  const find = (text: string) =>
    waitUntil(`${text} is listed`, async () => (await running()).find(({ query }) => query.includes(text)));

  it("are listed with the session that blocks them, cancelled and ended", async () => {
    const [first, second] = [await enter(), await enter()];
    await first.query("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    await first.query("INSERT INTO t VALUES (1, 1)");
    await first.query("BEGIN");
    await first.query("UPDATE t SET n = 2");
    const [[row]] = await first.query<RowDataPacket[]>("SELECT CONNECTION_ID() AS id");
    const waiting = second.query("UPDATE t SET n = 3").then(
      () => "done",
      ({ errno }: { errno: number }) => errno,
    );
    const blocked = await waitUntil("the lock's owner is listed", async () => {
      const found = (await running()).find(({ query }) => query.includes("n = 3"));
      return found !== undefined && found.blockedBy.length > 0 && found;
    });
    expect(blocked).toMatchObject({ username: "app_user", database: "defaultdb", blockedBy: [row?.["id"]] });
    const { sessions } = machine.driver;
    const options = { terminate: false };
    const other = { ...blocked.session, startedUs: 1n };
    expect(await sessions?.signal(machine.instance, other, options, machine.signal)).toEqual({ found: false });
    expect(await sessions?.signal(machine.instance, blocked.session, options, machine.signal)).toEqual({ found: true });
    expect(await waiting).toBe(1317);
    await first.query("ROLLBACK");
    // A canceled query leaves its session open; a terminated session is closed.
    await first.query("SELECT GET_LOCK('held', 0)");
    const ended = second.query("SELECT GET_LOCK('held', 600)").catch((error: Error) => error.message);
    const { session } = await find("GET_LOCK('held', 600)");
    expect(await sessions?.signal(machine.instance, session, { terminate: true }, machine.signal)).toEqual({
      found: true,
    });
    expect(await ended).toMatch(/lost|closed|interrupted|killed/i);
    first.destroy();
    second.destroy();
  });
});
