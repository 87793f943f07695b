import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

describe.skipIf(!hasEngine("postgresql", "17"))("a request whose caller aborts", () => {
  let machine: EngineMachine;
  const user = (username: string, role: string) =>
    create(EngineUserSchema, { username, role, verifier: scramVerifier("secret") });

  beforeAll(async () => {
    const users = [user("app_user", "admin")];
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", "17", { users });
    await machine.bringUp();
  });
  afterAll(() => machine?.remove());

  it("is canceled in the engine too", async () => {
    const { instance, signal } = machine;
    const aborting = new AbortController();
    await withSession(instance, signal, async (holder) => {
      const waiting = async () => (await holder.rows("SELECT 1 FROM pg_locks WHERE NOT granted")).length;
      await holder.rows("BEGIN; LOCK TABLE pg_authid IN EXCLUSIVE MODE");
      // The statement's timeouts are long: only the abort can end it.
      const limits = { statementMs: 600_000 };
      const late = withSession(instance, aborting.signal, (session) => session.rows("CREATE ROLE late"), limits);
      const refused = expect(late).rejects.toThrow("the deadline passed");
      await waitUntil("it waits for the lock", async () => (await waiting()) === 1);
      aborting.abort(new Error("the deadline passed"));
      await refused;
      await waitUntil("the engine let go of it", async () => (await waiting()) === 0);
      await holder.rows("COMMIT");
      expect(await holder.rows("SELECT 1 FROM pg_roles WHERE rolname = 'late'")).toEqual([]);
    });
  });

  it("ends before a later call reads the engine's state", async () => {
    const { driver, instance, signal } = machine;
    const { users } = driver;
    if (users === undefined) throw new Error("the engine has no users");
    const coming = user("coming", "readonly");
    const settled = () => users.settled(instance, coming, signal);
    await withSession(instance, signal, async (holder) => {
      const waiting = async () => (await holder.rows("SELECT 1 FROM pg_locks WHERE NOT granted")).length;
      await holder.rows("BEGIN; LOCK TABLE pg_authid IN EXCLUSIVE MODE");
      const change = users.put(instance, coming, signal);
      await waitUntil("the change waits for the lock", async () => (await waiting()) === 1);
      const found = settled();
      await waitUntil("the look waits for the change", async () => (await waiting()) === 2);
      await holder.rows("COMMIT");
      expect(await found).toEqual({ exists: true, matches: true, role: "readonly" });
      await change;
    });
    await users.drop(instance, "coming", signal);
    expect(await settled()).toEqual({ exists: false, matches: false, role: "" });
  });

  it("leaves a user whose removal was interrupted visible, and can be repeated", async () => {
    const { driver, instance, signal } = machine;
    if (driver.users === undefined) throw new Error("the engine has no users");
    await driver.users.put(instance, user("leaver", "admin"), signal);
    const leaver = await connectPostgresql(machine, { user: "leaver", password: "secret" });
    await leaver.query("CREATE TABLE theirs (a int)");
    const aborting = new AbortController();
    const inDatabase = { database: "defaultdb" };
    await withSession(
      instance,
      signal,
      async (holder) => {
        await holder.rows("BEGIN; LOCK TABLE public.theirs");
        const removal = driver.users?.drop(instance, "leaver", aborting.signal);
        const refused = expect(removal).rejects.toThrow("the deadline passed");
        await waitUntil("it waits for the table", async () => {
          return (await holder.rows("SELECT 1 FROM pg_locks WHERE NOT granted")).length === 1;
        });
        aborting.abort(new Error("the deadline passed"));
        await refused;
      },
      inDatabase,
    );
    await expect(connectPostgresql(machine, { user: "leaver", password: "secret" })).rejects.toThrow("too many");
    expect((await driver.users.list(instance, signal)).map(({ username }) => username)).toEqual(["app_user", "leaver"]);
    expect(await driver.users.drop(instance, "leaver", signal)).toEqual({ existed: true });
    expect((await driver.users.list(instance, signal)).map(({ username }) => username)).toEqual(["app_user"]);
  });
});
