import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  attempt,
  dropObject,
  findObject,
  ifDatabaseExists,
  isInterrupted,
  isCreated,
  createObject,
} from "./attempts.ts";
import { openSession } from "./read-contents.ts";
import { byApi, serviceExecutors } from "./take-service-step.ts";
import type { WalkFixture } from "./walk-fixture.ts";
import type { Action } from "./walk-ledger.ts";
import type { WalkStep, WalkStepKind } from "./walk-step.ts";

type StepOf<K extends WalkStepKind> = Extract<WalkStep, { kind: K }>;
/** Executes the step and returns its outcome, in a word or two. */
type Executor<K extends WalkStepKind> = (fixture: WalkFixture, step: StepOf<K>) => Promise<string>;

const restMs = 2_000;

const sql =
  ({ within }: WalkFixture, text: string, database?: string, options?: string) =>
  () =>
    within((client) => client.query(text), database, options);

const isSame = (one: { name: string; database?: string }, other: { name: string; database: string }) =>
  one.name === other.name && one.database === other.database;
const quoted = (name: string) => `"${name}"`;

/** Executors of each kind of step. */
const executors: { readonly [K in WalkStepKind]: Executor<K> } = {
  ...serviceExecutors,
  "create-database": (fixture, { name, via }) =>
    createObject(fixture, { kind: "database", name }, () =>
      via === "api" ? byApi(fixture, "POST", "/databases", { name }) : sql(fixture, `CREATE DATABASE ${name}`)(),
    ),
  "drop-database": async (fixture, { name, via, atRest }) => {
    if (atRest) {
      await fixture.pause();
      // Time: the length of the rest.
      await sleep(restMs);
    }
    try {
      return await dropObject(fixture, { kind: "database", name }, () =>
        via === "api" ? byApi(fixture, "DELETE", `/databases/${name}`) : sql(fixture, `DROP DATABASE ${name}`)(),
      );
    } finally {
      fixture.resume();
    }
  },
  "close-database": (fixture, { name, option }) =>
    isCreated(fixture, "database", name)
      ? attempt({ startedAt: Date.now() }, sql(fixture, `ALTER DATABASE ${name} WITH ${option}`))
      : Promise.resolve("skipped: it may not be there"),
  "half-drop-database": (fixture, { name }) => halfDrop(fixture, name),
  "create-role": (fixture, { name, via }) =>
    createObject(fixture, { kind: "role", name }, () =>
      via === "api"
        ? byApi(fixture, "POST", "/database-users", { username: name, role: "readwrite" })
        : sql(fixture, `CREATE ROLE ${name} LOGIN PASSWORD '${randomUUID()}'`)(),
    ),
  "drop-role": (fixture, { name, via }) =>
    dropObject(fixture, { kind: "role", name }, () =>
      via === "api" ? byApi(fixture, "DELETE", `/database-users/${name}`) : sql(fixture, `DROP ROLE ${name}`)(),
    ),
  "create-extension": ifDatabaseExists((fixture, { name, database }) =>
    createObject(
      fixture,
      { kind: "extension", name, database },
      sql(fixture, `CREATE EXTENSION ${quoted(name)} CASCADE`, database),
    ),
  ),
  "drop-extension": ifDatabaseExists((fixture, { name, database }) =>
    dropObject(
      fixture,
      { kind: "extension", name, database },
      sql(fixture, `DROP EXTENSION ${quoted(name)}`, database),
    ),
  ),
  "create-table": ifDatabaseExists((fixture, { name, database, rows, unlogged }) => {
    const what = unlogged ? "UNLOGGED TABLE" : "TABLE";
    const series = `SELECT i, md5(i::text) AS text FROM generate_series(1, ${rows}) AS i`;
    const object = { kind: "table", name, database, size: rows, unlogged } as const;
    return createObject(fixture, object, sql(fixture, `CREATE ${what} ${name} AS ${series}`, database));
  }),
  "drop-table": ifDatabaseExists((fixture, { name, database }) =>
    dropObject(fixture, { kind: "table", name, database }, sql(fixture, `DROP TABLE ${name}`, database)),
  ),
  "create-sequence": ifDatabaseExists((fixture, { name, database }) =>
    createObject(fixture, { kind: "sequence", name, database }, sql(fixture, `CREATE SEQUENCE ${name}`, database)),
  ),
  "advance-sequence": ifDatabaseExists(async (fixture, { name, database, by }) => {
    if (!isCreated(fixture, "sequence", name, database)) return "skipped: it may not be there";
    const { values } = findObject(fixture, "sequence", name, database);
    const action: Action = { startedAt: Date.now() };
    let value = 0;
    const outcome = await attempt(action, async () => {
      const advance = `SELECT max(nextval('${name}'))::int AS value FROM generate_series(1, ${by})`;
      // A value counts once a transaction that wrote committed after it.
      const { rows } = await fixture.within((client) => client.query<{ value: number }>(advance), database);
      value = rows[0]?.value ?? 0;
    });
    values.push({ value, action });
    return outcome;
  }),
  "create-large-object": ifDatabaseExists((fixture, { name, database, bytes }) =>
    createObject(
      fixture,
      { kind: "large object", name, database, size: bytes },
      sql(fixture, `SELECT lo_from_bytea(${name}, convert_to(repeat('x', ${bytes}), 'UTF8'))`, database),
    ),
  ),
  "drop-large-object": ifDatabaseExists((fixture, { name, database }) =>
    dropObject(fixture, { kind: "large object", name, database }, sql(fixture, `SELECT lo_unlink(${name})`, database)),
  ),
  "set-for-database": ifDatabaseExists((fixture, { name, database, value }) => {
    const set = sql(fixture, `ALTER DATABASE ${database} SET ${quoted(name)} = '${value}'`);
    // A setting that is set again exists already.
    if (fixture.ledger.objects.some((each) => each.kind === "setting" && isSame(each, { name, database })))
      return set().then(() => "done");
    return createObject(fixture, { kind: "setting", name, database }, set);
  }),
  "create-tablespace": async (fixture, { name }) => {
    try {
      await sql(fixture, `CREATE TABLESPACE ${name} LOCATION '/tmp'`)();
    } catch (error) {
      // SQLSTATE insufficient_privilege.
      if ((error as { code?: string }).code === "42501") return "refused, as it must be";
      if (isInterrupted(error)) return "interrupted";
      throw error;
    }
    throw new Error("a user may make a tablespace");
  },

  prepare: (fixture, { name }) =>
    createObject(fixture, { kind: "prepared transaction", name }, async () => {
      await fixture.within(async (client) => {
        await client.query("BEGIN");
        await client.query(insertNamed, [name]);
        await client.query(`PREPARE TRANSACTION '${name}'`);
      });
    }),
  "end-prepared": async (fixture, { name, commits }) => {
    if (!isCreated(fixture, "prepared transaction", name)) return "skipped: it may not be there";
    const verb = commits ? "COMMIT" : "ROLLBACK";
    const end = sql(fixture, `${verb} PREPARED '${name}'`);
    return dropObject(fixture, { kind: "prepared transaction", name }, end);
  },
  begin: async (fixture, { name }) => {
    const client = await openSession(fixture.platform, fixture.source);
    fixture.open.set(name, client);
    try {
      await client.query("BEGIN");
      await client.query(insertNamed, [name]);
      return "done";
    } catch (error) {
      if (isInterrupted(error)) return "interrupted";
      throw error;
    }
  },
  end: async (fixture, { name, commits }) => {
    const client = fixture.open.get(name);
    fixture.open.delete(name);
    if (client === undefined) return "skipped: it is not open";
    const row = fixture.nextRow();
    try {
      if (!commits) {
        await client.query("ROLLBACK");
        return "done";
      }
      // The row belongs to this transaction, and is visible from its commit on.
      await client.query("INSERT INTO ledger VALUES ($1, md5($1::bigint::text))", [row]);
      const created: Action = { startedAt: Date.now() };
      fixture.ledger.rows.push({ id: row, created });
      return await attempt(created, () => client.query("COMMIT"));
    } catch (error) {
      if (isInterrupted(error)) return "interrupted";
      throw error;
    } finally {
      await client.end().catch(() => undefined);
    }
  },
};

const insertNamed = "INSERT INTO transactions (name) VALUES ($1)";

/** Timeouts of DROP DATABASE, from one that ends it before it began. */
const halfDropMs = [2, 4, 6, 8, 11, 14, 18, 24, 32, 45, 60];

async function halfDrop(fixture: WalkFixture, name: string): Promise<string> {
  if (!isCreated(fixture, "database", name)) return "skipped: it may not be there";
  const limitOf = async () => {
    const found = "SELECT datconnlimit AS limit FROM pg_database WHERE datname = $1";
    const { rows } = await fixture.within((client) => client.query<{ limit: number }>(found, [name]));
    return rows[0]?.limit;
  };
  findObject(fixture, "database", name).dropped = { startedAt: Date.now() };
  for (const ms of halfDropMs) {
    // Dirty pages make the checkpoint of the drop a long one.
    const dirt = "CREATE TABLE dirt AS SELECT md5(i::text) AS text FROM generate_series(1, 20000) AS i";
    await sql(fixture, `DROP TABLE IF EXISTS dirt; ${dirt}`)();
    await fixture
      .within(async (client) => {
        await client.query(`SET statement_timeout = ${ms}`);
        await client.query(`DROP DATABASE IF EXISTS ${name}`);
      })
      .catch(() => undefined);
    const limit = await limitOf();
    if (limit === undefined) return `dropped completely within ${ms} ms`;
    if (limit === -2) return `dropped halfway after ${ms} ms`;
  }
  return "never began";
}

/** Executes one step; resolves with its outcome. Throws for a forbidden result. */
export function takeStep<K extends WalkStepKind>(fixture: WalkFixture, step: StepOf<K>): Promise<string> {
  const take: Executor<K> = executors[step.kind as K];
  return take(fixture, step);
}
