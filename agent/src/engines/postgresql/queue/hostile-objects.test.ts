import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { claim } from "./claim.ts";
import { deleteQueue } from "./delete-queue.ts";
import { enqueue } from "./enqueue.ts";
import { migrate, schemaVersionOf } from "./migrate.ts";
import { QueueRefused } from "./queue-refused.ts";
import { createQueue } from "./stored-queues.ts";
import { sweep } from "./queue-maintenance.ts";

/** Body of a function that would abuse the caller's superuser privileges. */
const body = "LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE app_user SUPERUSER; RETURN NULL; END $$";

/** Objects with names of the platform and of pg_catalog, which a careless search_path would find first. */
const traps = [
  "CREATE SCHEMA trap",
  `CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz ${body}`,
  `CREATE FUNCTION trap.hashtextextended(text, bigint) RETURNS bigint ${body}`,
  `CREATE FUNCTION trap.coalesce_of(integer) RETURNS integer ${body}`,
  `CREATE FUNCTION trap.jsonb_typeof(jsonb) RETURNS text ${body}`,
  `CREATE FUNCTION trap.equals(text, text) RETURNS boolean ${body}`,
  "CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.equals)",
  `CREATE FUNCTION trap.less(timestamptz, timestamptz) RETURNS boolean ${body}`,
  "CREATE OPERATOR trap.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = trap.less)",
  "CREATE TABLE trap.pg_namespace (oid oid)",
  "CREATE TABLE trap.messages (id int)",
  "ALTER DATABASE defaultdb SET search_path = trap, pg_catalog, public",
  "ALTER DATABASE defaultdb SET default_transaction_isolation = 'serializable'",
  "ALTER DATABASE defaultdb SET standard_conforming_strings = off",
];

/** Statements that create a schema with the platform's name. */
const conflictingObjects: Readonly<Record<string, readonly string[]>> = {
  "an empty schema": [],
  "a table with a version": ["CREATE TABLE mdb_queue.meta (one boolean, version integer, service_id text)"],
  "a view with a version": ["CREATE VIEW mdb_queue.meta AS SELECT mdb_queue.spring() AS version"],
  "functions of our names": [
    `CREATE FUNCTION mdb_queue.sweep(text, integer, timestamptz) RETURNS integer ${body}`,
    `CREATE FUNCTION mdb_queue.purge(text, boolean, integer) RETURNS bigint ${body}`,
  ],
  "tables with triggers and rules": [
    "CREATE TABLE mdb_queue.queues (name text, deleted_at timestamptz)",
    "CREATE TRIGGER spring BEFORE INSERT OR UPDATE OR DELETE ON mdb_queue.queues FOR EACH STATEMENT EXECUTE FUNCTION mdb_queue.spring_trigger()",
    "CREATE TABLE mdb_queue.tasks (id text)",
    "CREATE RULE spring AS ON INSERT TO mdb_queue.tasks DO ALSO SELECT mdb_queue.spring()",
  ],
};

describe.skipIf(!hasEngine("postgresql", "17"))("objects that users prepared as a trap", () => {
  let database: QueueDatabase;
  let user: pg.Client;
  const migration = (name = "defaultdb") =>
    database
      .asPlatform((session) => migrate(session, { serviceId: "service" }), name)
      .catch((error: unknown) => (error instanceof QueueRefused ? error.queueCode : error));
  beforeAll(async () => {
    database = await createQueueDatabase("17", { withSchema: false });
    user = await database.connect();
    for (const statement of traps) await user.query(statement);
  });
  afterAll(async () => {
    await user?.end();
    await database?.remove();
  });

  async function expectNoTrapRan(): Promise<void> {
    const rows = await database.asPlatform((session) =>
      session.rows("SELECT rolname FROM pg_roles WHERE rolsuper AND rolname <> 'holdfast'"),
    );
    expect(rows).toEqual([]);
  }

  it.each(Object.entries(conflictingObjects))("make the platform refuse %s", async (_, statements) => {
    await user.query("CREATE SCHEMA mdb_queue");
    await user.query(`CREATE FUNCTION mdb_queue.spring() RETURNS integer ${body}`);
    await user.query(`CREATE FUNCTION mdb_queue.spring_trigger() RETURNS trigger ${body}`);
    for (const statement of statements) await user.query(statement);
    expect(await migration()).toBe("schema_not_owned");
    expect(await database.asPlatform(schemaVersionOf)).toBe(0);
    await expectNoTrapRan();
    await user.query("DROP SCHEMA mdb_queue CASCADE");
  });

  it.each([
    ["CREATE ROLE holdfast_queue LOGIN PASSWORD 'x'", "holdfast_queue"],
    ["CREATE ROLE holdfast_queue_agent", "holdfast_queue_agent"],
  ])("keeps the platform away from a role: %s", async (statement, role) => {
    await user.query(statement);
    expect(await migration()).toBe("schema_not_owned");
    expect(await database.asPlatform(schemaVersionOf)).toBe(0);
    await user.query(`DROP ROLE ${role}`);
  });

  it("do not block the schema's creation for long", async () => {
    const other = await database.connect("app_user");
    await other.query(
      "BEGIN; SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('holdfast queues', 0))",
    );
    await expect(database.asPlatform((session) => migrate(session, { serviceId: "service" }))).rejects.toMatchObject({
      name: "EngineBusy",
    });
    await other.end();
  });

  it("do not affect the schema's creation or work on queues", async () => {
    expect(await migration()).toMatchObject({ from: 0, to: 5 });
    const queue = { id: "q", name: "q", visibilityTimeoutSeconds: 5, maxAttempts: 1, dlqEnabled: true };
    await database.asPlatform(async (session) => {
      await createQueue(session, queue);
      const messages = [{ payload: "{}", delaySeconds: 0 }];
      await enqueue(session, { taskId: "t", queue: "q", bodyHash: "", messages });
      expect(await claim(session, { queue: "q", worker: "w", max: 5 })).toHaveLength(1);
      await sweep(session);
    });
    const trapped = await database.connect();
    await trapped.query("SET search_path = trap, pg_catalog");
    await trapped.query("SELECT mdb_queue.enqueue('q', '{}')");
    expect((await trapped.query("SELECT id FROM mdb_queue.claim('q', 'w', 5)")).rowCount).toBe(1);
    await trapped.query("SELECT * FROM mdb_queue.stats('q')");
    await trapped.end();
    await database.asPlatform((session) => deleteQueue(session, { id: "q" }));
    await expectNoTrapRan();
  });

  it("cannot be created in the schema", async () => {
    for (const statement of [
      "CREATE TABLE mdb_queue.mine (a int)",
      "CREATE FUNCTION mdb_queue.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
      "CREATE OR REPLACE FUNCTION mdb_queue.purge(text, boolean, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
      "CREATE TRIGGER mine BEFORE INSERT ON mdb_queue.messages FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
      "CREATE RULE mine AS ON DELETE TO mdb_queue.messages DO INSTEAD NOTHING",
      "CREATE TABLE mine () INHERITS (mdb_queue.messages)",
      "CREATE TABLE mine (id bigint REFERENCES mdb_queue.messages)",
      "ALTER TABLE mdb_queue.messages DISABLE TRIGGER ALL",
      "ALTER TABLE mdb_queue.messages ADD COLUMN mine text",
      "CREATE POLICY mine ON mdb_queue.messages USING (false)",
      "CREATE INDEX ON mdb_queue.messages (claimed_by)",
      "ALTER SCHEMA mdb_queue RENAME TO mine",
      "ALTER SCHEMA mdb_queue OWNER TO app_user",
      "DROP SCHEMA mdb_queue CASCADE",
      "TRUNCATE mdb_queue.messages",
      "INSERT INTO mdb_queue.queues (id, name) VALUES ('x', 'x')",
      "UPDATE mdb_queue.queues SET deleted_at = NULL",
      "DELETE FROM mdb_queue.tasks",
      "UPDATE mdb_queue.tasks SET state = 'failed'",
      "INSERT INTO mdb_queue.meta (version, service_id) VALUES (1, 'x')",
      "UPDATE mdb_queue.meta SET version = 1",
      "SELECT nextval('mdb_queue.messages_id_seq')",
      "GRANT holdfast_queue_agent TO app_user",
      "SET ROLE holdfast_queue_agent",
    ])
      await expect(user.query(statement), statement).rejects.toMatchObject({ code: "42501" });
  });

  it("are found when attached to the platform's tables", async () => {
    const superuser = (statements: string) => database.asPlatform((session) => session.rows(statements));
    await superuser(
      "CREATE FUNCTION mdb_queue.odd() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION mdb_queue.odd() OWNER TO app_user",
    );
    expect(await migration()).toBe("schema_not_owned");
    await superuser("DROP FUNCTION mdb_queue.odd()");
    await superuser("CREATE RULE odd AS ON DELETE TO mdb_queue.messages DO INSTEAD NOTHING");
    expect(await migration()).toBe("schema_not_owned");
    await superuser("DROP RULE odd ON mdb_queue.messages");
    expect(await migration()).toMatchObject({ from: 5, to: 5 });
  });

  it("give no access without the group, and with it users can work", async () => {
    await database.asAgent((session) =>
      createQueue(session, { id: "w", name: "w", visibilityTimeoutSeconds: 5, maxAttempts: 1, dlqEnabled: true }),
    );
    for (const name of ["reader", "writer"] as const) {
      const client = await database.connect(name);
      for (const statement of ["SELECT * FROM mdb_queue.messages", "SELECT mdb_queue.enqueue('w', '{}')"])
        await expect(client.query(statement), `${name}: ${statement}`).rejects.toMatchObject({ code: "42501" });
      await client.end();
    }
    await user.query("GRANT holdfast_queue TO writer");
    const worker = await database.connect("writer");
    await worker.query("SELECT mdb_queue.enqueue('w', '{}')");
    expect((await worker.query("SELECT * FROM mdb_queue.ack_and_claim('w', 'me', '{}', '{}', 10)")).rowCount).toBe(1);
    await worker.end();
  });
});
