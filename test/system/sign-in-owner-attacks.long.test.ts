import * as client from "openid-client";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AuthJson, createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

const longMs = 300_000;

/** The nine tables, each with a column that can be set. */
// biome-ignore format: a table, aligned so that it reads as one
const tables = [
  ["users",              "id"],
  ["identities",         "id"],
  ["sessions",           "id"],
  ["refresh_tokens",     "family"],
  ["mfa_totp",           "user_id"],
  ["mfa_recovery_codes", "user_id"],
  ["login_tokens",       "id"],
  ["oauth_codes",        "code_hash"],
  ["events",             "type"],
] as const;
/** Tables that the owner may read. */
const readable: readonly string[] = ["users", "identities"];

/** Statements of an owner on each of the tables. */
const onTable = (table: string, key: string): readonly string[] => [
  `INSERT INTO ${table} OVERRIDING SYSTEM VALUE SELECT * FROM ${table}`,
  `UPDATE ${table} SET ${key} = ${key}`,
  `DELETE FROM ${table}`,
  `TRUNCATE ${table} CASCADE`,
  `DO $$ BEGIN LOCK TABLE ${table} IN ROW EXCLUSIVE MODE; END $$`,
  `CREATE TRIGGER theirs BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION evil.trigger()`,
  `CREATE RULE theirs AS ON INSERT TO ${table} DO ALSO INSERT INTO evil.called VALUES ('rule')`,
  `CREATE POLICY theirs ON ${table} USING (true)`,
  `ALTER TABLE ${table} DISABLE TRIGGER ALL`,
  `ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`,
  `ALTER TABLE ${table} ADD COLUMN theirs text`,
  `ALTER TABLE ${table} OWNER TO CURRENT_USER`,
  `CREATE TABLE evil.child () INHERITS (${table})`,
  `CREATE INDEX ON ${table} ((evil.shadow()))`,
  `CREATE STATISTICS evil.theirs ON (md5(${key}::text)) FROM ${table}`,
  `CREATE PUBLICATION theirs FOR TABLE ${table}`,
  `COMMENT ON TABLE ${table} IS 'theirs'`,
  `DROP TABLE ${table} CASCADE`,
];

/** Statements on objects around the tables; \`ROLE\` is the issuers' role. */
const around: readonly string[] = [
  "CREATE TABLE _mdb_auth.theirs (id int)",
  "CREATE FUNCTION _mdb_auth.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz'",
  "CREATE TABLE evil.leans (id uuid REFERENCES _mdb_auth.users ON DELETE RESTRICT)",
  "DROP SCHEMA _mdb_auth CASCADE",
  "ALTER SCHEMA _mdb_auth RENAME TO theirs",
  "ALTER SCHEMA _mdb_auth OWNER TO CURRENT_USER",
  "COMMENT ON SCHEMA _mdb_auth IS 'theirs'",
  "SET ROLE holdfast_auth_owner",
  "GRANT holdfast_auth_owner TO CURRENT_USER",
  "CREATE ROLE theirs IN ROLE holdfast_auth_owner",
  "REASSIGN OWNED BY holdfast_auth_owner TO CURRENT_USER",
  "DROP OWNED BY holdfast_auth_owner CASCADE",
  "SET ROLE ROLE",
  "GRANT ROLE TO CURRENT_USER",
  "ALTER ROLE ROLE PASSWORD 'theirs'",
  "ALTER ROLE ROLE SET search_path = evil",
  "ALTER ROLE ROLE IN DATABASE defaultdb SET search_path = evil",
  "DROP OWNED BY ROLE",
  "DROP ROLE ROLE",
  "ALTER DEFAULT PRIVILEGES FOR ROLE holdfast_auth_owner GRANT ALL ON TABLES TO PUBLIC",
  "CREATE EVENT TRIGGER theirs ON ddl_command_start EXECUTE FUNCTION evil.trigger()",
  "CREATE PUBLICATION theirs FOR TABLES IN SCHEMA _mdb_auth",
];

/** Functions that record their callers; each has the name of one that issuers and agents call. */
const shadows: readonly string[] = [
  "CREATE SCHEMA evil",
  "CREATE TABLE evil.called (what text)",
  "GRANT USAGE ON SCHEMA evil TO PUBLIC",
  "GRANT ALL ON evil.called TO PUBLIC",
  `CREATE FUNCTION evil.shadow() RETURNS int IMMUTABLE LANGUAGE plpgsql
     AS $$ BEGIN INSERT INTO evil.called VALUES (current_user); RETURN 1; END $$`,
  "CREATE FUNCTION evil.trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
  ...["now() RETURNS timestamptz", "clock_timestamp() RETURNS timestamptz"].map(
    (head) => `CREATE FUNCTION evil.${head} LANGUAGE plpgsql
      AS $$ BEGIN INSERT INTO evil.called VALUES (current_user); RETURN pg_catalog.now(); END $$`,
  ),
  `CREATE FUNCTION evil.is_same(uuid, uuid) RETURNS boolean LANGUAGE plpgsql
     AS $$ BEGIN INSERT INTO evil.called VALUES (current_user); RETURN true; END $$`,
  "CREATE OPERATOR evil.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = evil.is_same)",
  `CREATE FUNCTION evil.is_same(text, text) RETURNS boolean LANGUAGE plpgsql
     AS $$ BEGIN INSERT INTO evil.called VALUES (current_user); RETURN true; END $$`,
  "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.is_same)",
  "CREATE TABLE evil.users (id int)",
];

/** Settings of the database that would break sessions with them. */
const settings: readonly string[] = [
  "search_path = evil, pg_catalog",
  "default_transaction_read_only = on",
  "default_transaction_isolation = 'serializable'",
  "statement_timeout = 1",
  "lock_timeout = 1",
  "idle_in_transaction_session_timeout = 1",
  "standard_conforming_strings = off",
  "bytea_output = 'escape'",
  "DateStyle = 'SQL, DMY'",
  "IntervalStyle = 'sql_standard'",
  "TimeZone = 'Asia/Kathmandu'",
  "client_encoding = 'LATIN1'",
  "row_security = off",
  "synchronous_commit = off",
  "enable_indexscan = off",
  "client_min_messages = 'debug5'",
];

describe("the owner of a database with an app's users", { timeout: longMs }, () => {
  const fixture = createSignInUnderTest();
  let owner: Client;
  const opened: Client[] = [];

  beforeAll(async () => {
    await fixture.start();
    await fixture.enable();
    owner = await open();
    for (const statement of shadows) await owner.query(statement);
  }, longMs);
  afterAll(async () => {
    await Promise.all(opened.map((each) => each.end().catch(() => undefined)));
    await fixture.remove();
  }, longMs);

  async function open(database = fixture.users.connection.database): Promise<Client> {
    const { platform, users } = fixture;
    const sql = await openPostgresql(platform, { ...users.connection, database }, { password: users.password });
    opened.push(sql);
    return sql;
  }

  const codeOf = (statement: string) =>
    owner.query(statement).then(
      () => "worked",
      ({ code }: { code: string }) => code,
    );

  async function privileges(): Promise<object[]> {
    const { rows } = await owner.query<object>(
      `SELECT relname, relowner::regrole, relacl::text FROM pg_class WHERE relnamespace = '_mdb_auth'::regnamespace
       UNION ALL SELECT nspname, nspowner::regrole, nspacl::text FROM pg_namespace WHERE nspname = '_mdb_auth'
       ORDER BY relname`,
    );
    return rows;
  }

  async function issuersRole(): Promise<string> {
    const { rows } = await owner.query<{ rolname: string }>(
      "SELECT rolname FROM pg_roles WHERE rolname LIKE 'holdfast_auth_%' AND rolcanlogin",
    );
    expect(rows).toHaveLength(1);
    return rows[0]?.rolname ?? "";
  }

  it("changes none of nine tables, attaches nothing to them, and reads two", async () => {
    await fixture.signIn("amy@example.com");
    const before = await privileges();
    const allowed: string[] = [];
    const tried = async (statement: string) => {
      const code = await codeOf(statement);
      if (code !== "42501") allowed.push(`${code}: ${statement}`);
    };
    for (const [table, key] of tables) {
      const read = await codeOf(`SELECT FROM _mdb_auth.${table} LIMIT 1`);
      expect(read, table).toBe(readable.includes(table) ? "worked" : "42501");
      for (const statement of onTable(`_mdb_auth.${table}`, key)) await tried(statement);
    }
    // Where they have a privilege, PostgreSQL only warns that they cannot grant it.
    await owner.query("GRANT ALL ON _mdb_auth.users, _mdb_auth.identities TO PUBLIC");
    await owner.query("GRANT USAGE, CREATE ON SCHEMA _mdb_auth TO PUBLIC");
    expect(await privileges()).toEqual(before);
    const role = await issuersRole();
    for (const statement of around)
      await tried(statement.replaceAll("ROLE ROLE", `ROLE ${role}`).replaceAll(/(GRANT|BY) ROLE/g, `$1 ${role}`));
    expect(allowed).toEqual([]);
    const { rows } = await owner.query("SELECT email FROM _mdb_auth.users");
    expect(rows).toEqual([{ email: "amy@example.com" }]);
  });

  it("has none of its settings and functions applied in sessions of the platform", async () => {
    const config = await fixture.discover();
    const { refresh_token: token = "" } = await fixture.signIn("ben@example.com");
    const database = fixture.users.connection.database;
    for (const setting of settings) await owner.query(`ALTER DATABASE ${database} SET ${setting}`);
    try {
      killImmediately(fixture.platform.processes().issuer ?? 0);
      const refreshed = await waitUntil("a refresh works under their settings", () =>
        client.refreshTokenGrant(config, token).catch(() => undefined),
      );
      expect(refreshed.refresh_token).toBeDefined();
      const signedIn = await fixture.signIn("cleo@example.com");
      expect(signedIn.claims()?.["email"]).toBe("cleo@example.com");
      // Agents connect to the same database.
      const { rest } = fixture.platform;
      const { users } = (await rest.get<{ users: { id: string; email: string }[] }>(fixture.path("/users?limit=50")))
        .json;
      expect(users.map(({ email }) => email).toSorted()).toEqual([
        "amy@example.com",
        "ben@example.com",
        "cleo@example.com",
      ]);
      const deleted = await rest.post<{ task_id: string }>(fixture.path("/users/delete"), {
        email: "cleo@example.com",
      });
      const { task_id: id } = expectStatus(deleted, 202).json;
      await waitUntil("the erasure is done", async () => {
        const { json } = await rest.get<{ status: string; result: unknown }>(`/tasks/${id}`);
        return json.status === "completed" && JSON.stringify(json.result) === '{"erased":true}';
      });
    } finally {
      await owner.query("SET default_transaction_read_only = off");
      await owner.query(`ALTER DATABASE ${database} RESET ALL`);
    }
    // Sessions that began under the settings end with their issuer.
    killImmediately(fixture.platform.processes().issuer ?? 0);
    expect((await owner.query("SELECT what FROM evil.called")).rows).toEqual([]);
  });

  it("uses all connections and ends those of issuers, while users sign in", async () => {
    const role = await issuersRole();
    const clients: Client[] = [];
    await waitUntil("every connection is taken", async () => {
      try {
        clients.push(await open());
        return false;
      } catch (error) {
        expect(String(error)).toMatch(/remaining connection slots|too many/);
        return true;
      }
    });
    expect(clients.length).toBeGreaterThan(5);
    killImmediately(fixture.platform.processes().issuer ?? 0);
    const discovered = await waitUntil("an issuer runs again", () => fixture.discover().catch(() => undefined));
    expect((await fixture.signIn("dan@example.com")).claims()?.["email"]).toBe("dan@example.com");
    let { refresh_token: token = "" } = await fixture.signIn("eve@example.com");
    for (let times = 0; times < 5; times += 1) {
      const { rows } = await owner.query<{ ended: number }>(
        "SELECT count(pg_terminate_backend(pid))::int AS ended FROM pg_stat_activity WHERE usename = $1",
        [role],
      );
      expect(rows[0]?.ended).toBeGreaterThan(0);
      // A concurrent request may get an error, and is retried.
      const next = await waitUntil("a refresh works", () =>
        client.refreshTokenGrant(discovered, token).catch((error: unknown) => {
          if (error instanceof client.ResponseBodyError) throw error;
          return undefined;
        }),
      );
      token = next.refresh_token ?? "";
    }
    expect((await fixture.signIn("fay@example.com")).claims()?.["email"]).toBe("fay@example.com");
    await Promise.all(clients.map((each) => each.end()));
  });

  it.each([
    [
      "of their own",
      ["CREATE SCHEMA _mdb_auth"],
      /^schema: The schema _mdb_auth is not the platform's; drop or rename it/,
    ],
    [
      "with the platform's mark",
      ["CREATE SCHEMA _mdb_auth", "COMMENT ON SCHEMA _mdb_auth IS 'Users of an app, kept by the platform. Version 1'"],
      /^schema: The schema _mdb_auth is not the platform's; drop or rename it/,
    ],
    [
      "with tables and triggers in it",
      [
        "CREATE SCHEMA _mdb_auth",
        "CREATE TABLE _mdb_auth.users (id uuid PRIMARY KEY, email text)",
        "CREATE FUNCTION _mdb_auth.take() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "CREATE TRIGGER take BEFORE INSERT ON _mdb_auth.users FOR EACH ROW EXECUTE FUNCTION _mdb_auth.take()",
      ],
      /^schema: .*_mdb_auth.* is not the platform's; drop or rename it/,
    ],
  ] as const)(
    "sees sign-in fail over a schema %s, and begin once that is dropped",
    async (name, statements, reason) => {
      const { rest } = fixture.platform;
      const database = `squatted_${name.replaceAll(/[^a-z]/g, "_")}`.slice(0, 40);
      await owner.query(`CREATE DATABASE ${database}`);
      const otherSession = await open(database);
      for (const statement of statements) await otherSession.query(statement);
      const { id } = expectStatus(
        await rest.post<{ id: string }>("/app-services", { name: database.replaceAll("_", "-") }),
        201,
      ).json;
      const attached = { service_id: fixture.users.service.id, database_name: database };
      const attachment = await rest.post<{ id: string }>(`/app-services/${id}/attachments`, attached);
      const body = {
        attachment_id: attachment.json.id,
        smtp: fixture.smtp,
        redirect_uris: ["https://shop.example/cb"],
      };
      const enabled = async (status: string) => {
        expectStatus(await rest.post(`/app-services/${id}/auth/enable`, body), 201);
        return waitUntil(`it is ${status}`, async () => {
          const { json } = await rest.get<AuthJson>(`/app-services/${id}/auth`);
          return json.status === status ? json : undefined;
        });
      };
      expect((await enabled("Failed")).failure_reason).toMatch(reason);
      await otherSession.query("DROP SCHEMA _mdb_auth CASCADE");
      expect((await enabled("Active")).schema_version_applied).toBe("2");
      expectStatus(await rest.call("DELETE", `/app-services/${id}`), 204);
    },
  );
});
