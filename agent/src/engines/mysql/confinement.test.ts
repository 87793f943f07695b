import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Connection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { accessOf } from "./access.ts";
import { createMysqlDriver } from "./driver.ts";
import { createGlobalLocks } from "./global-locks.ts";
import { withSession } from "./session.ts";

const roles = { app_user: "admin", ops: "admin", writer: "readwrite", reader: "readonly" } as const;
type User = keyof typeof roles;
const names = Object.keys(roles) as User[];
const skip = await requireRecipes(import.meta.filename, "mysql");

/** Statements that no role may run: they would leave the engine, change it, or touch the platform's part of it. */
const forbidden = [
  "SELECT LOAD_FILE('/etc/passwd') IS NULL INTO OUTFILE '/tmp/x'",
  "LOAD DATA INFILE '/etc/passwd' INTO TABLE defaultdb.t",
  "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE defaultdb.t",
  "CREATE FUNCTION f RETURNS STRING SONAME 'keyring_udf.so'",
  "INSTALL PLUGIN clone SONAME 'mysql_clone.so'",
  "INSTALL COMPONENT 'file://component_log_sink_json'",
  "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')",
  "CREATE TABLESPACE t ADD DATAFILE '/tmp/t.ibd'",
  "CREATE TABLE defaultdb.away (a INT) DATA DIRECTORY = '/tmp'",
  "CLONE LOCAL DATA DIRECTORY '/tmp/clone'",
  "SET GLOBAL read_only = ON",
  "SET GLOBAL max_connections = 1000",
  "SET PERSIST max_connections = 1000",
  "SET SESSION sql_log_bin = 0",
  "SET SESSION gtid_next = 'AUTOMATIC'",
  "RESET BINARY LOGS AND GTIDS",
  "PURGE BINARY LOGS BEFORE NOW()",
  "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'",
  "START REPLICA",
  "LOCK INSTANCE FOR BACKUP",
  "ALTER INSTANCE RELOAD TLS",
  "ALTER INSTANCE DISABLE INNODB REDO_LOG",
  "ALTER INSTANCE ROTATE INNODB MASTER KEY",
  "SHUTDOWN",
  "RESTART",
  "KILL 1",
  "FLUSH LOGS",
  "ALTER USER 'holdfast'@'localhost' IDENTIFIED BY 'x'",
  "ALTER USER 'mysql.session'@'localhost' ACCOUNT UNLOCK",
  "DROP USER 'holdfast'@'localhost'",
  "GRANT SUPER ON *.* TO CURRENT_USER()",
  "GRANT SYSTEM_USER ON *.* TO CURRENT_USER()",
  "GRANT SELECT ON mysql.* TO CURRENT_USER()",
  "GRANT ALL ON *.* TO CURRENT_USER()",
  "GRANT PROXY ON 'holdfast'@'localhost' TO CURRENT_USER()",
  "GRANT 'holdfast'@'localhost' TO CURRENT_USER()",
  "GRANT 'mysql.session'@'localhost' TO CURRENT_USER()",
  "GRANT 'mysql.infoschema'@'localhost' TO CURRENT_USER()",
  "GRANT 'mysql.sys'@'localhost' TO CURRENT_USER()",
  "GRANT app_user TO 'holdfast'@'localhost'",
  "SET DEFAULT ROLE NONE TO 'holdfast'@'localhost'",
  "SET GLOBAL mandatory_roles = 'app_user'",
  "SELECT * FROM mysql.user",
  "UPDATE mysql.user SET authentication_string = ''",
  "CREATE TABLE mysql.t (a INT)",
  "CREATE TABLE sys.t (a INT)",
  "UPDATE sys.sys_config SET value = '1'",
  "UPDATE performance_schema.setup_instruments SET enabled = 'NO'",
  "SELECT * FROM holdfast.heartbeat",
  "UPDATE holdfast.heartbeat SET at = NOW()",
  "DROP DATABASE holdfast",
  "DROP DATABASE mysql",
  "CREATE DEFINER = 'holdfast'@'localhost' VIEW defaultdb.v AS SELECT 1",
  "CREATE DEFINER = 'nobody'@'%' PROCEDURE defaultdb.p() SELECT 1",
];

/**
 * Numbers of denials for a server, database, table, column, account, routine and variable, and of refusals by an option
 * or by the kind of statement.
 */
const refusals = [1044, 1045, 1142, 1143, 1227, 1290, 1370, 1094, 1095, 1698, 3530, 3535, 3546, 3662, 3879, 3948, 4165];

/** Privileges of the engine, from SHOW PRIVILEGES and the dynamic ones of the platform's account, with each role's. */
async function privilegesOf(machine: EngineMachine): Promise<{ static: string[]; dynamic: string[] }> {
  return withSession(machine.instance, machine.signal, async (session) => {
    const rows = await session.rows<{ Privilege: string }>("SHOW PRIVILEGES");
    const granted = await session.rows<{ name: string }>(
      "SELECT DISTINCT priv AS name FROM mysql.global_grants WHERE user = 'holdfast'",
    );
    const dynamic = granted.map(({ name }) => name);
    const all = rows.map(({ Privilege }) => Privilege.toUpperCase());
    return { static: all.filter((name) => !dynamic.includes(name)), dynamic };
  });
}

describe.skipIf(skip !== undefined)("users of mysql 9.7", () => {
  let machine: EngineMachine;
  const clients = new Map<User, Connection>();
  const as = (user: User): Connection => {
    const client = clients.get(user);
    if (client === undefined) throw new Error(`${user} is not connected`);
    return client;
  };
  const enter = (user: string) => connectMysql(machine, { user, password: "secret" });

  beforeAll(async () => {
    const users = Object.entries(roles).map(([username, role]) =>
      create(EngineUserSchema, { username, role, verifier: mysqlVerifier("secret") }),
    );
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users });
    await machine.bringUp();
    for (const user of names) clients.set(user, await enter(user));
    await as("app_user").query("CREATE TABLE defaultdb.t (a INT)");
  });
  afterAll(async () => {
    for (const client of clients.values()) client.destroy();
    await machine?.remove();
  });

  it.each(names)("%s cannot leave the engine or change it", async (user) => {
    const others: [string, number | undefined][] = [];
    for (const statement of forbidden) {
      const code = await as(user)
        .query(statement)
        .then(
          () => undefined,
          ({ errno }: { errno: number }) => errno,
        );
      if (code === undefined || !refusals.includes(code)) others.push([statement, code]);
    }
    expect(others).toEqual([]);
  });

  it.each(names)("%s gets no privilege that its role lacks", async (user) => {
    const { privileges, dynamic } = accessOf(roles[user]);
    const all = await privilegesOf(machine);
    expect(all.dynamic.length).toBeGreaterThan(30);
    const lacks = [...all.static, ...all.dynamic].filter(
      (name) => !["USAGE", "PROXY", "GRANT OPTION", ...privileges, ...dynamic].includes(name),
    );
    expect(lacks).toContain("SUPER");
    for (const name of lacks)
      await expect(as(user).query(`GRANT ${name} ON *.* TO CURRENT_USER()`), name).rejects.toThrow(/denied/i);
  });

  it("a privilege that an admin gives on is restricted as its own are", async () => {
    const admin = as("app_user");
    await admin.query("CREATE USER 'given'@'%' IDENTIFIED BY 'secret' REQUIRE SSL");
    await admin.query("GRANT SELECT, INSERT, UPDATE ON *.* TO 'given'@'%'");
    const given = await enter("given");
    await expect(given.query("SELECT * FROM mysql.user")).rejects.toThrow(/denied/);
    await expect(given.query("SELECT * FROM holdfast.heartbeat")).rejects.toThrow(/denied/);
    given.destroy();
    await admin.query("DROP USER 'given'@'%'");
  });

  it("an admin grants roles that it created, and no account of the platform is a role", async () => {
    const admin = as("app_user");
    await admin.query("CREATE ROLE reports");
    await admin.query("GRANT SELECT ON defaultdb.* TO reports");
    await admin.query("CREATE USER 'analyst'@'%' IDENTIFIED BY 'secret' REQUIRE SSL");
    await admin.query("GRANT reports TO 'analyst'@'%' WITH ADMIN OPTION");
    await admin.query("FLUSH PRIVILEGES");
    const analyst = await enter("analyst");
    await analyst.query("SELECT * FROM defaultdb.t");
    await expect(analyst.query("INSERT INTO defaultdb.t VALUES (1)")).rejects.toThrow(/denied/);
    await expect(analyst.query("GRANT 'holdfast'@'localhost' TO CURRENT_USER()")).rejects.toThrow(/denied/);
    analyst.destroy();
    await admin.query("DROP USER 'analyst'@'%'");
    await admin.query("DROP ROLE reports");
  });

  it("an admin grants no role while the platform creates an account, which is not protected yet", async () => {
    const admin = await enter("app_user");
    await admin.query("SET lock_wait_timeout = 1");
    await withSession(machine.instance, machine.signal, async (session) => {
      await session.rows("LOCK INSTANCE FOR BACKUP");
      await expect(admin.query("GRANT ops TO writer")).rejects.toThrow(/timeout/i);
    });
    admin.destroy();
  });

  it("an account without REQUIRE SSL gets it, and enters with TLS only", async () => {
    await as("app_user").query("CREATE USER 'plain'@'%' IDENTIFIED BY 'secret'");
    await as("app_user").query("GRANT SELECT ON defaultdb.* TO 'plain'@'%'");
    const open = () => connectMysql(machine, { user: "plain", password: "secret", plain: true });
    const attempt = open().then((client) => client.query("SELECT 1"));
    await expect(attempt).rejects.toThrow(/init_connect|Aborted|closed|lost|denied/i);
    await machine.driver.observe(machine.instance, machine.signal);
    await expect(open()).rejects.toThrow("Access denied");
    (await enter("plain")).destroy();
  });

  it("a global read lock of a user is named in the health", async () => {
    const locking = await enter("app_user");
    await locking.query("FLUSH TABLES WITH READ LOCK");
    const { checks, responded } = await machine.driver.observe(machine.instance, machine.signal);
    expect(responded).toBe(true);
    expect(checks[0]).toMatchObject({ name: "liveness", status: "degraded" });
    expect(checks[0]?.reason).toContain("app_user locks all databases");
    await locking.query("UNLOCK TABLES");
    await waitUntil("the engine is healthy again", async () => {
      const again = await machine.driver.observe(machine.instance, machine.signal);
      return again.checks[0]?.status === "healthy";
    });
    locking.destroy();
  });

  it("a global read lock of a user ends with its session after a minute", async () => {
    let nowMs = 0;
    const locks = createGlobalLocks(() => nowMs);
    const check = () => withSession(machine.instance, machine.signal, (session) => locks.check(session));
    const locking = await enter("app_user");
    await locking.query("FLUSH TABLES WITH READ LOCK");
    expect(await check()).toContain("app_user locks all databases");
    nowMs = 59_999;
    await check();
    await locking.query("SELECT 1");
    nowMs = 60_000;
    await check();
    await expect(locking.query("SELECT 1")).rejects.toThrow();
    await waitUntil("no session has the lock", async () => (await check()) === undefined);
  });

  it("admins define triggers, functions, events and views, and writers write", async () => {
    const admin = as("app_user");
    await admin.query("CREATE TRIGGER defaultdb.tr BEFORE INSERT ON defaultdb.t FOR EACH ROW SET NEW.a = NEW.a + 1");
    await admin.query("CREATE FUNCTION defaultdb.f() RETURNS INT RETURN 1");
    await admin.query("CREATE EVENT defaultdb.e ON SCHEDULE EVERY 1 DAY DO SELECT 1");
    await admin.query("CREATE VIEW defaultdb.vi AS SELECT a FROM defaultdb.t");
    await as("writer").query("INSERT INTO defaultdb.t VALUES (defaultdb.f())");
    const [rows] = await as("reader").query("SELECT a FROM defaultdb.vi");
    expect(rows).toEqual([{ a: 2 }]);
    await expect(as("writer").query("CREATE TABLE defaultdb.no (a INT)")).rejects.toThrow(/denied/);
    await expect(as("reader").query("INSERT INTO defaultdb.t VALUES (1)")).rejects.toThrow(/denied/);
    const dropping = machine.driver.users?.drop(machine.instance, "ops", machine.signal);
    expect(await dropping).toEqual({ existed: true });
  });

  it("writes of users are refused while the disk is nearly full, and the platform's are not", async () => {
    const { driver, instance, signal } = machine;
    await driver.reload({ ...instance, writesBlocked: true }, signal);
    const writer = await enter("writer");
    await expect(writer.query("INSERT INTO defaultdb.t VALUES (1)")).rejects.toThrow(/read.only/);
    const { checks } = await driver.observe({ ...instance, writesBlocked: true }, signal);
    expect(checks[0]).toMatchObject({ name: "liveness", status: "healthy" });
    await driver.reload(instance, signal);
    await writer.query("INSERT INTO defaultdb.t VALUES (1)");
    writer.destroy();
  });
});
