import { create } from "@bufbuild/protobuf";
import { EngineUserSchema, PoolerSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createPostgresqlDriver } from "../driver.ts";
import { poolerRole } from "../layout.ts";
import { withSession } from "../session.ts";

for (const version of ["17", "18"])
  describe.skipIf(!hasEngine("postgresql", version))(`a pooler beside PostgreSQL ${version}`, () => serves(version));

/** Settings that the pooler of each image restores for a client, with a value that is not the default. */
const tracked = (version: string): readonly (readonly [string, string])[] => [
  ["IntervalStyle", "iso_8601"],
  ["TimeZone", "Asia/Tokyo"],
  ["application_name", "reports"],
  ...(version === "17" ? [] : [["search_path", "sales"] as const]),
];

function serves(version: string): void {
  let machine: EngineMachine;
  const user = (username: string, role: string, password = "secret") =>
    create(EngineUserSchema, { username, role, verifier: scramVerifier(password) });

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
      users: [user("app_user", "admin")],
      pooler: create(PoolerSchema, { mode: "transaction", port }),
      parameters: { max_connections: "25" },
    });
    await machine.bringUp();
    await waitUntil("the pooler answers", async () => (await check())?.status === "healthy", {
      describe: () => machine.output(),
    });
  });
  afterAll(() => machine?.remove());

  async function check() {
    const { checks } = await machine.driver.observe(machine.instance, machine.signal);
    return checks.find(({ name }) => name === "pooler");
  }

  /** The machine as clients of the pooler see it. */
  const pooled = () => {
    const { ca, serverName, instance } = machine;
    const { address, pooler } = instance.spec;
    return { ca, serverName, instance: { spec: { address, port: pooler?.port ?? 0 } } };
  };
  const open = (
    username: string,
    password: string,
    options: { from?: string; database?: string; plain?: true; options?: string } = {},
  ) => connectPostgresql(pooled(), { user: username, password, ...options });
  const reload = async (change: Parameters<EngineMachine["change"]>[0]) => {
    machine.change(change);
    await machine.writeConfig();
    await machine.driver.reload(machine.instance, machine.signal);
  };

  it("assigns a session to each transaction and checks users' own passwords", async () => {
    const clients = await Promise.all(Array.from({ length: 60 }, () => open("app_user", "secret")));
    const pids = await Promise.all(
      clients.map(
        async (client) => (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid,
      ),
    );
    expect(new Set(pids).size).toBeLessThanOrEqual(10);
    await Promise.all(clients.map((client) => client.end()));
    await expect(open("app_user", "wrong")).rejects.toThrow(/password|authentication|SASL/i);
    await expect(open("nobody_here", "secret")).rejects.toThrow(/password|authentication|SASL/i);
    await expect(open("app_user", "secret", { plain: true })).rejects.toThrow();
  });

  it("accepts users and passwords newer than itself, and rejects dropped ones", async () => {
    const { driver, instance, signal } = machine;
    await driver.users?.put(instance, user("reader", "readonly", "first"), signal);
    const reader = await open("reader", "first");
    await driver.users?.put(instance, user("reader", "readonly", "second"), signal);
    await expect(open("reader", "first")).rejects.toThrow(/password|authentication|SASL/i);
    const again = await open("reader", "second");
    expect((await again.query("SELECT current_user")).rows).toEqual([{ current_user: "reader" }]);
    await driver.users?.drop(instance, "reader", signal);
    await expect(open("reader", "second")).rejects.toThrow(/password|authentication|SASL/i);
    await expect(reader.query("SELECT 1")).rejects.toThrow();
    await again.end().catch(() => undefined);
  });

  it("accepts a role whose name only begins like the platform's", async () => {
    const client = await open("app_user", "secret");
    await client.query("CREATE ROLE holdfast_z LOGIN PASSWORD 'known'");
    await client.end();
    const own = await open("holdfast_z", "known");
    expect((await own.query("SELECT current_user AS name")).rows).toEqual([{ name: "holdfast_z" }]);
    await own.end();
  });

  it("serves users with the attribute REPLICATION, also when it is given while they are connected", async () => {
    const { driver, instance, signal } = machine;
    const before = await open("app_user", "secret");
    const alter = (replication: boolean) =>
      driver.users?.put(instance, create(EngineUserSchema, { username: "app_user", replication }), signal, {
        expected: "present",
      });
    await alter(true);
    const after = await open("app_user", "secret");
    for (const client of [before, after])
      expect((await client.query("SELECT current_user AS name")).rows).toEqual([{ name: "app_user" }]);
    await Promise.all([before.end(), after.end()]);
    await alter(false);
  });

  it("runs prepared statements again after a migration, once the sessions with the old ones were ended", async () => {
    const direct = await connectPostgresql(machine, { user: "app_user", password: "secret" });
    await direct.query("CREATE TABLE migrated (x int)");
    const client = await open("app_user", "secret");
    const select = { name: "all", text: "SELECT * FROM migrated" };
    await client.query(select);
    await direct.query("ALTER TABLE migrated ADD COLUMN y int");
    await expect(client.query(select)).rejects.toThrow("cached plan must not change result type");
    // The pooler disconnects a client whose session ends while it has one: the first statement returns it, and the
    // second ends only when the sessions have ended.
    await client.query("SELECT 1");
    await direct.query(`SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
      WHERE client_addr IS NULL AND usename = current_user AND datname = current_database() AND state = 'idle'`);
    expect((await client.query(select)).fields).toHaveLength(2);
    await Promise.all([client.end(), direct.end()]);
  });

  it("rejects the platform's roles and database", async () => {
    for (const role of ["holdfast", "holdfast_console", "holdfast_replica", poolerRole])
      await expect(open(role, "secret"), role).rejects.toThrow();
    await expect(open("app_user", "secret", { database: "holdfast" })).rejects.toThrow();
    await expect(open("app_user", "secret", { database: "pgbouncer" })).rejects.toThrow();
    const rights = await withSession(machine.instance, machine.signal, (session) =>
      session.rows(
        `SELECT r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolreplication, r.rolbypassrls,
             has_table_privilege(r.oid, 'pg_authid', 'SELECT') AS secrets,
             has_table_privilege(r.oid, 'holdfast.heartbeat', 'SELECT, INSERT, UPDATE, DELETE') AS tables,
             has_schema_privilege(r.oid, 'holdfast', 'CREATE') AS makes
           FROM pg_roles r WHERE rolname = $1`,
        [poolerRole],
      ),
    );
    expect(Object.values(rights[0] ?? { none: true }).every((right) => right === false)).toBe(true);
  });

  it("leaves sessions to direct clients of the engine", async () => {
    const { driver, instance, signal } = machine;
    await driver.users?.put(instance, user("second", "readwrite"), signal);
    const busy = await Promise.all(
      Array.from({ length: 40 }, (_, at) => open(at % 2 === 0 ? "app_user" : "second", "secret")),
    );
    const direct = await connectPostgresql(machine, { user: "app_user", password: "secret" });
    await direct.query("SELECT pg_advisory_lock(1)");
    const waiting = busy.map((client) => client.query("SELECT pg_advisory_xact_lock(1)"));
    const waiters = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_advisory_xact_lock(1)'";
    const count = async () => Number((await direct.query(waiters)).rows[0]?.count);
    await waitUntil("its pools are full", async () => (await count()) === 12);
    const second = await connectPostgresql(machine, { user: "app_user", password: "secret" });
    await direct.end();
    await Promise.all(waiting);
    await Promise.all([second, ...busy].map((client) => client.end()));
  });

  it("applies the allow-list and the mode while it runs, and ends forbidden clients", async () => {
    const client = await open("app_user", "secret", { from: "127.0.0.9" });
    const ended = new Promise((resolve) => client.once("end", resolve));
    const stays = await open("app_user", "secret", { from: "127.0.0.8" });
    await reload({ allowedCidrs: ["127.0.0.0/29", "127.0.0.8/32"] });
    await ended;
    await expect(open("app_user", "secret", { from: "127.0.0.9" })).rejects.toThrow();
    expect((await stays.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
    const { pooler } = machine.instance.spec;
    if (pooler === undefined) throw new Error("there is a pooler");
    await reload({ pooler: { ...pooler, mode: "session" } });
    await stays.query("SET work_mem = '5MB'");
    const another = await open("app_user", "secret");
    expect((await another.query("SHOW work_mem")).rows).not.toEqual([{ work_mem: "5MB" }]);
    expect((await stays.query("SHOW work_mem")).rows).toEqual([{ work_mem: "5MB" }]);
    await Promise.all([stays.end(), another.end()]);
  });

  it("tracks what the engine reports, and refuses other options by name", async () => {
    const greeted = (options: string) => open("app_user", "secret", { options });
    const other = await open("app_user", "secret");
    for (const [name, value] of tracked(version)) {
      const client = await greeted(`-c ${name}=${value}`);
      const show = async (of: typeof client) => Object.values((await of.query(`SHOW ${name}`)).rows[0] ?? {})[0];
      expect(await show(client), name).toBe(value);
      expect(await show(other), name).not.toBe(value);
      await client.end();
    }
    await other.end();
    for (const name of ["statement_timeout", "geqo", "bytea_output", ...(version === "17" ? ["search_path"] : [])])
      await expect(greeted(`-c ${name}=1`), name).rejects.toThrow(`unsupported startup parameter in options: ${name}`);
  });

  it("blocks writes while the engine blocks them, also of clients that connected before", async () => {
    const block = async (writesBlocked: boolean) => {
      const instance = { ...machine.instance, writesBlocked };
      await machine.writeConfig(instance);
      await machine.driver.reload(instance, machine.signal);
    };
    const insert = (client: Awaited<ReturnType<typeof open>>) =>
      client.query("INSERT INTO blocked VALUES (1)").then(
        () => "written",
        () => "refused",
      );
    const before = await open("app_user", "secret");
    await before.query("CREATE TABLE blocked (id int)");
    expect(await insert(before)).toBe("written");
    await block(true);
    expect(await insert(before)).toBe("refused");
    const during = await open("app_user", "secret");
    expect(await insert(during)).toBe("refused");
    await block(false);
    const after = await open("app_user", "secret");
    expect(await insert(after)).toBe("written");
    expect(await insert(after)).toBe("written");
    for (const client of [before, during, after]) client.connection.stream.destroy();
  });

  it("takes over a role of its name that a user created first", async () => {
    const { instance, signal } = machine;
    await withSession(instance, signal, async (session) => {
      await session.rows(`GRANT ${poolerRole} TO app_user; ALTER ROLE ${poolerRole} PASSWORD 'known' CREATEDB`);
    });
    await reload({});
    const roles = await withSession(instance, signal, (session) =>
      session.rows(
        `SELECT rolpassword, rolcreatedb, (SELECT count(*)::int FROM pg_auth_members WHERE roleid = a.oid) AS members
         FROM pg_authid a WHERE rolname = $1`,
        [poolerRole],
      ),
    );
    expect(roles).toEqual([{ rolpassword: null, rolcreatedb: false, members: 0 }]);
    await (await open("app_user", "secret")).end();
  });
}
