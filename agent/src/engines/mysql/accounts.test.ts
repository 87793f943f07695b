import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type Connection, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createMysqlDriver } from "./driver.ts";
import { withSession } from "./session.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("accounts that an admin of mysql creates in SQL", () => {
  let machine: EngineMachine;
  let admin: Connection;
  const enter = (user: string, password = "secret", plain = false) =>
    connectMysql(machine, { user, password, plain, database: "information_schema" });
  const observe = () => machine.driver.observe(machine.instance, machine.signal);
  const listed = async () =>
    (await machine.driver.users?.list(machine.instance, machine.signal))?.map(({ username }) => username) ?? [];
  const running = async () =>
    (await machine.driver.sessions?.running(machine.instance, 50, machine.signal))?.queries ?? [];
  const accounts = () =>
    withSession(machine.instance, machine.signal, async (session) => {
      const rows = await session.rows<{ account: string }>(
        "SELECT CONCAT(user, '@', host, IF(account_locked = 'Y', ' locked', '')) AS account FROM mysql.user",
      );
      return rows.map(({ account }) => account).filter((each) => !/^mysql[.].*@localhost/.test(each));
    });
  /** The message with which the engine ended the session, or the result. */
  const ask = (client: Connection, sql: string) =>
    client.query(sql).then(
      () => "done",
      (error: Error) => error.message,
    );
  const ended = /closed|lost|interrupted|killed|ECONNRESET|inactivity|shutdown/i;
  const isEnded = async (client: Connection) => expect(await ask(client, "SELECT 1")).toMatch(ended);

  beforeAll(async () => {
    const verifier = mysqlVerifier("secret");
    const users = [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })];
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users });
    await machine.bringUp();
    admin = await enter("app_user");
  });
  afterAll(async () => {
    admin?.destroy();
    await machine?.remove();
  });

  it("under a name that only begins like the platform's are accounts of users", async () => {
    await admin.query("CREATE USER 'holdfastly'@'%' IDENTIFIED BY 'secret' REQUIRE SSL");
    const client = await enter("holdfastly");
    await withSession(machine.instance, machine.signal, async (session) => {
      await session.rows("SELECT GET_LOCK('held', 0)");
      const waiting = ask(client, "SELECT GET_LOCK('held', 600)");
      await waitUntil("the query is listed", async () =>
        (await running()).some(({ username }) => username === "holdfastly"),
      );
      expect(await listed()).toContain("holdfastly");
      const writesBlocked = { ...machine.instance, writesBlocked: true };
      await machine.driver.reload(writesBlocked, machine.signal);
      expect(await waiting).toMatch(ended);
    });
    await machine.driver.reload(machine.instance, machine.signal);
    admin = await enter("app_user");
    const put = { username: "holdfastly", role: "readonly", verifier: mysqlVerifier("other") };
    await machine.driver.users?.put(machine.instance, create(EngineUserSchema, put), machine.signal);
    (await enter("holdfastly", "other")).destroy();
    expect(await machine.driver.users?.drop(machine.instance, "holdfastly", machine.signal)).toEqual({ existed: true });
    const again = create(EngineUserSchema, put);
    await expect(machine.driver.users?.put(machine.instance, again, machine.signal)).rejects.toThrow(
      "is reserved for the platform",
    );
  });

  it("get a new password and are unlocked, and keep their privileges", async () => {
    const { users } = machine.driver;
    const reset = (username: string, password: string) => {
      const user = create(EngineUserSchema, { username, role: "readonly", verifier: mysqlVerifier(password) });
      return users?.put(machine.instance, user, machine.signal, { expected: "present" });
    };
    const grants = () =>
      withSession(machine.instance, machine.signal, (session) => session.rows("SHOW GRANTS FOR bob@'%'"));
    for (const sql of [
      "CREATE TABLE defaultdb.of_bob (n INT)",
      "CREATE USER bob@'%' IDENTIFIED BY 'former'",
      "GRANT SELECT ON defaultdb.of_bob TO bob@'%'",
      "CREATE ROLE granted, unused",
      "GRANT granted TO bob@'%'",
    ])
      await admin.query(sql);
    // Users of the platform cannot retain passwords.
    await withSession(machine.instance, machine.signal, (session) =>
      session.rows("ALTER USER bob@'%' IDENTIFIED BY 'rotated' RETAIN CURRENT PASSWORD"),
    );
    await admin.query("ALTER USER bob@'%' ACCOUNT LOCK");
    const before = await grants();
    const verifier = mysqlVerifier("first");
    const user = create(EngineUserSchema, { username: "bob", role: "readonly", verifier });
    const put = () => users?.put(machine.instance, user, machine.signal, { expected: "present" });
    expect(await put()).toEqual({ changed: true, role: "custom" });
    expect(await put()).toEqual({ changed: false, role: "custom" });
    const client = await enter("bob", "first");
    expect(await ask(client, "SELECT n FROM defaultdb.of_bob")).toBe("done");
    client.destroy();
    for (const password of ["former", "rotated"])
      await expect(enter("bob", password), password).rejects.toThrow("Access denied");
    expect(await grants()).toEqual(before);
    for (const name of ["granted", "unused", "absent"])
      await expect(reset(name, "first"), name).rejects.toMatchObject({ code: "database_user_not_found" });
    await admin.query("DROP USER bob@'%'");
    await admin.query("DROP ROLE granted, unused");
  });

  it("under exact names of the platform are dropped with their sessions", async () => {
    const names = [
      "'system user'@'%'",
      "'mysql.sys'@'%'",
      "'holdfast_replica'@'%'",
      "'holdfast_sync_2'@'%'",
      "'holdfast'@'%'",
      "'holdfast'@'local%'",
    ];
    for (const name of names) await admin.query(`CREATE USER ${name} IDENTIFIED BY 'secret' REQUIRE SSL`);
    const clients = [await enter("holdfast_replica"), await enter("system user")];
    await observe();
    expect((await accounts()).toSorted()).toEqual(["app_user@%", "holdfast@localhost"]);
    for (const client of clients) await isEnded(client);
  });

  it("get no privilege of a member that is added", async () => {
    const squatted = "'holdfast_replica'@'%'";
    await admin.query(`CREATE USER ${squatted} IDENTIFIED BY 'secret' REQUIRE SSL`);
    await admin.query(`GRANT CREATE USER, SELECT, PROCESS ON *.* TO ${squatted}`);
    const client = await enter("holdfast_replica");
    await admin.query(`ALTER USER ${squatted} ACCOUNT LOCK`);
    const unlocked = "'holdfast_sync_2'@'%'";
    await admin.query(`CREATE USER ${unlocked} IDENTIFIED BY 'secret'`);
    const hostname = machine.serverName;
    const members = [
      { nodeId: machine.instance.spec.nodeId, number: 1, hostname, address: "127.0.0.1" },
      { nodeId: "second", number: 2, hostname, address: "127.0.0.9" },
    ];
    const primaryNodeId = machine.instance.spec.nodeId;
    const replication = create(ReplicationSchema, { primaryNodeId, members, secret: "secret".repeat(9) });
    const { driver } = machine;
    machine.change({ replication });
    await machine.writeConfig();
    await machine.startCompanions();
    await driver.reload(machine.instance, machine.signal);
    await driver.replication?.admit(machine.instance, machine.signal);
    expect(await ask(client, "ALTER USER 'holdfast'@'localhost' IDENTIFIED BY 'x'")).toMatch(ended);
    const expected = ["app_user@%", "holdfast@localhost", "holdfast_replica@%"];
    const locked = ["holdfast_sync_1@% locked", "holdfast_sync_2@% locked"];
    expect((await accounts()).toSorted()).toEqual([...expected, ...locked]);
    await expect(enter("holdfast_replica")).rejects.toThrow(/denied/i);
    expect(await ask(admin, `ALTER USER ${squatted} IDENTIFIED BY 'x'`)).toMatch(/SYSTEM_USER/);
    await observe();
    expect((await accounts()).toSorted()).toEqual([...expected, ...locked]);
  }, 60_000);

  it("cannot reach the peer port, and other clients of it do not shut out users", async () => {
    const { address, port } = machine.instance.spec;
    const at = { host: address, port: port + 10_000, localAddress: "127.0.88.9" };
    const greeted: string[] = [];
    const outsiders = Array.from({ length: 400 }, () =>
      connectTcp(at)
        .on("data", (data) => greeted.push(String(data)))
        .on("error", () => undefined),
    );
    // The kernel's queue has the others, which it drops.
    await waitUntil("they are refused", async () => outsiders.filter(({ closed }) => closed).length > 100);
    (await enter("app_user")).destroy();
    for (const outsider of outsiders) outsider.destroy();
    expect(greeted).toEqual([]);
    const member = connectTcp({ ...at, localAddress: "127.0.0.9" });
    const [greeting] = (await once(member, "data")) as [Buffer];
    expect(String(greeting)).toContain("caching_sha2_password");
    member.destroy();
  });

  it("do not shadow a user, whose password works, and a new one after a reset", async () => {
    await admin.query("CREATE USER 'app_user'@'localhost' IDENTIFIED BY 'of the attacker' REQUIRE SSL");
    const attacker = await enter("app_user", "of the attacker");
    await expect(enter("app_user")).rejects.toThrow(/denied/i);
    const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: mysqlVerifier("second") });
    await machine.driver.users?.put(machine.instance, user, machine.signal);
    await isEnded(attacker);
    admin = await enter("app_user", "second");
    await expect(enter("app_user", "of the attacker")).rejects.toThrow(/denied/i);
    // The observation does the same without a call.
    await admin.query("CREATE USER 'app_user'@'l%' IDENTIFIED BY 'of the attacker' REQUIRE SSL");
    await admin.query("CREATE USER ''@'localhost' IDENTIFIED BY 'any' REQUIRE SSL");
    const anonymous = await enter("holdfast_replica", "any");
    await observe();
    await isEnded(anonymous);
    expect((await accounts()).filter((each) => each.startsWith("app_user") || each.startsWith("@"))).toEqual([
      "app_user@%",
    ]);
    admin = await enter("app_user", "second");
  });

  it("under another host become users of any host, or are locked if objects run as them", async () => {
    await admin.query("CREATE USER 'shop'@'localhost' IDENTIFIED BY 'secret'");
    await admin.query("CREATE USER 'old'@'localhost' IDENTIFIED BY 'secret' REQUIRE SSL");
    await admin.query("CREATE USER 'far'@'10.0.0.7' IDENTIFIED BY 'secret' REQUIRE SSL");
    await admin.query("GRANT ALL ON defaultdb.* TO 'old'@'localhost'");
    const old = await enter("old");
    await old.query("CREATE VIEW defaultdb.v AS SELECT 1 AS one");
    const { checks } = await observe();
    const found = await accounts();
    expect(found).toContain("shop@%");
    expect(found).toContain("old@localhost locked");
    expect(found).toContain("far@10.0.0.7 locked");
    await isEnded(old);
    expect((await admin.query("SELECT one FROM defaultdb.v"))[0]).toEqual([{ one: 1 }]);
    expect(checks.find(({ name }) => name === "accounts")).toMatchObject({
      status: "degraded",
      reason: expect.stringContaining("far@10.0.0.7, old@localhost cannot sign in"),
    });
    (await enter("shop")).destroy();
    expect(await listed()).toContain("shop");
  });

  it("with an expired password have no session without TLS", async () => {
    await admin.query("CREATE USER 'expired'@'%' IDENTIFIED BY 'secret'");
    // Without TLS the engine accepts a password only if it has seen it lately.
    (await enter("expired")).destroy();
    await admin.query("ALTER USER 'expired'@'%' PASSWORD EXPIRE");
    const client = await openExpiredPlain(machine);
    await observe();
    await isEnded(client);
  });
});

/** A session without TLS of an expired password, which `init_connect` does not end. */
async function openExpiredPlain({ instance }: EngineMachine): Promise<Connection> {
  const { address, port } = instance.spec;
  const client = await createConnection({
    stream: connectTcp({ host: address, port }),
    user: "expired",
    password: "secret",
    flags: ["CAN_HANDLE_EXPIRED_PASSWORDS"],
  });
  client.on("error", () => undefined);
  await client.query("ALTER USER USER() IDENTIFIED BY 'secret'");
  return client;
}
