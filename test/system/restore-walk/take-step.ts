import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { attempt, drop, find, inside, isInterrupted, isMade, make } from "./attempts.ts";
import { openSession } from "./read-contents.ts";
import { byApi, serviceTakes } from "./take-service-step.ts";
import type { WalkGround } from "./walk-ground.ts";
import type { Deed } from "./walk-ledger.ts";
import type { WalkStep, WalkStepKind } from "./walk-step.ts";

type StepOf<K extends WalkStepKind> = Extract<WalkStep, { kind: K }>;
/** Does the step and answers what came of it, in a word or two. */
type Take<K extends WalkStepKind> = (ground: WalkGround, step: StepOf<K>) => Promise<string>;

const restMs = 2_000;

const sql =
  ({ within }: WalkGround, text: string, database?: string, options?: string) =>
  () =>
    within((client) => client.query(text), database, options);

const isSame = (one: { name: string; database?: string }, other: { name: string; database: string }) =>
  one.name === other.name && one.database === other.database;
const quoted = (name: string) => `"${name}"`;

/** How each kind of step is taken. */
const takes: { readonly [K in WalkStepKind]: Take<K> } = {
  ...serviceTakes,
  "create-database": (ground, { name, way }) =>
    make(ground, { kind: "database", name }, () =>
      way === "api" ? byApi(ground, "POST", "/databases", { name }) : sql(ground, `CREATE DATABASE ${name}`)(),
    ),
  "drop-database": async (ground, { name, way, atRest }) => {
    if (atRest) {
      await ground.pause();
      await sleep(restMs);
    }
    try {
      return await drop(ground, { kind: "database", name }, () =>
        way === "api" ? byApi(ground, "DELETE", `/databases/${name}`) : sql(ground, `DROP DATABASE ${name}`)(),
      );
    } finally {
      ground.resume();
    }
  },
  "close-database": (ground, { name, option }) =>
    isMade(ground, "database", name)
      ? attempt({ begunAt: Date.now() }, sql(ground, `ALTER DATABASE ${name} WITH ${option}`))
      : Promise.resolve("skipped: it may not be there"),
  "half-drop-database": (ground, { name }) => halfDrop(ground, name),
  "create-role": (ground, { name, way }) =>
    make(ground, { kind: "role", name }, () =>
      way === "api"
        ? byApi(ground, "POST", "/database-users", { username: name, role: "readwrite" })
        : sql(ground, `CREATE ROLE ${name} LOGIN PASSWORD '${randomUUID()}'`)(),
    ),
  "drop-role": (ground, { name, way }) =>
    drop(ground, { kind: "role", name }, () =>
      way === "api" ? byApi(ground, "DELETE", `/database-users/${name}`) : sql(ground, `DROP ROLE ${name}`)(),
    ),
  "create-extension": inside((ground, { name, database }) =>
    make(
      ground,
      { kind: "extension", name, database },
      sql(ground, `CREATE EXTENSION ${quoted(name)} CASCADE`, database),
    ),
  ),
  "drop-extension": inside((ground, { name, database }) =>
    drop(ground, { kind: "extension", name, database }, sql(ground, `DROP EXTENSION ${quoted(name)}`, database)),
  ),
  "create-table": inside((ground, { name, database, rows, unlogged }) => {
    const what = unlogged ? "UNLOGGED TABLE" : "TABLE";
    const series = `SELECT i, md5(i::text) AS text FROM generate_series(1, ${rows}) AS i`;
    const object = { kind: "table", name, database, size: rows, unlogged } as const;
    return make(ground, object, sql(ground, `CREATE ${what} ${name} AS ${series}`, database));
  }),
  "drop-table": inside((ground, { name, database }) =>
    drop(ground, { kind: "table", name, database }, sql(ground, `DROP TABLE ${name}`, database)),
  ),
  "create-sequence": inside((ground, { name, database }) =>
    make(ground, { kind: "sequence", name, database }, sql(ground, `CREATE SEQUENCE ${name}`, database)),
  ),
  "advance-sequence": inside(async (ground, { name, database, by }) => {
    if (!isMade(ground, "sequence", name, database)) return "skipped: it may not be there";
    const { values } = find(ground, "sequence", name, database);
    const deed: Deed = { begunAt: Date.now() };
    let value = 0;
    const outcome = await attempt(deed, async () => {
      const advance = `SELECT max(nextval('${name}'))::int AS value FROM generate_series(1, ${by})`;
      // A value counts once a transaction that wrote committed after it.
      const { rows } = await ground.within((client) => client.query<{ value: number }>(advance), database);
      value = rows[0]?.value ?? 0;
    });
    values.push({ value, deed });
    return outcome;
  }),
  "create-large-object": inside((ground, { name, database, bytes }) =>
    make(
      ground,
      { kind: "large object", name, database, size: bytes },
      sql(ground, `SELECT lo_from_bytea(${name}, convert_to(repeat('x', ${bytes}), 'UTF8'))`, database),
    ),
  ),
  "drop-large-object": inside((ground, { name, database }) =>
    drop(ground, { kind: "large object", name, database }, sql(ground, `SELECT lo_unlink(${name})`, database)),
  ),
  "set-for-database": inside((ground, { name, database, value }) => {
    const set = sql(ground, `ALTER DATABASE ${database} SET ${quoted(name)} = '${value}'`);
    // One that is set again is there already.
    if (ground.ledger.objects.some((each) => each.kind === "setting" && isSame(each, { name, database })))
      return set().then(() => "done");
    return make(ground, { kind: "setting", name, database }, set);
  }),
  "create-tablespace": async (ground, { name }) => {
    try {
      await sql(ground, `CREATE TABLESPACE ${name} LOCATION '/tmp'`)();
    } catch (error) {
      // SQLSTATE of a right that is missing.
      if ((error as { code?: string }).code === "42501") return "refused, as it must be";
      if (isInterrupted(error)) return "interrupted";
      throw error;
    }
    throw new Error("a user may make a tablespace");
  },

  prepare: (ground, { name }) =>
    make(ground, { kind: "prepared transaction", name }, async () => {
      await ground.within(async (client) => {
        await client.query("BEGIN");
        await client.query(insertNamed, [name]);
        await client.query(`PREPARE TRANSACTION '${name}'`);
      });
    }),
  "end-prepared": async (ground, { name, commits }) => {
    if (!isMade(ground, "prepared transaction", name)) return "skipped: it may not be there";
    const verb = commits ? "COMMIT" : "ROLLBACK";
    const end = sql(ground, `${verb} PREPARED '${name}'`);
    return drop(ground, { kind: "prepared transaction", name }, end);
  },
  begin: async (ground, { name }) => {
    const client = await openSession(ground.platform, ground.source);
    ground.open.set(name, client);
    try {
      await client.query("BEGIN");
      await client.query(insertNamed, [name]);
      return "done";
    } catch (error) {
      if (isInterrupted(error)) return "interrupted";
      throw error;
    }
  },
  end: async (ground, { name, commits }) => {
    const client = ground.open.get(name);
    ground.open.delete(name);
    if (client === undefined) return "skipped: it is not open";
    const row = ground.nextRow();
    try {
      if (!commits) {
        await client.query("ROLLBACK");
        return "done";
      }
      // The row is of this transaction, and visible from its commit on.
      await client.query("INSERT INTO ledger VALUES ($1, md5($1::bigint::text))", [row]);
      const made: Deed = { begunAt: Date.now() };
      ground.ledger.rows.push({ id: row, made });
      return await attempt(made, () => client.query("COMMIT"));
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

async function halfDrop(ground: WalkGround, name: string): Promise<string> {
  if (!isMade(ground, "database", name)) return "skipped: it may not be there";
  const limitOf = async () => {
    const found = "SELECT datconnlimit AS limit FROM pg_database WHERE datname = $1";
    const { rows } = await ground.within((client) => client.query<{ limit: number }>(found, [name]));
    return rows[0]?.limit;
  };
  find(ground, "database", name).dropped = { begunAt: Date.now() };
  for (const ms of halfDropMs) {
    // What is to be written out makes the checkpoint of the drop a long one.
    const dirt = "CREATE TABLE dirt AS SELECT md5(i::text) AS text FROM generate_series(1, 20000) AS i";
    await sql(ground, `DROP TABLE IF EXISTS dirt; ${dirt}`)();
    await ground
      .within(async (client) => {
        await client.query(`SET statement_timeout = ${ms}`);
        await client.query(`DROP DATABASE IF EXISTS ${name}`);
      })
      .catch(() => undefined);
    const limit = await limitOf();
    if (limit === undefined) return `dropped whole within ${ms} ms`;
    if (limit === -2) return `dropped halfway after ${ms} ms`;
  }
  return "never began";
}

/** Does one step; resolves with what came of it. Throws for what must not be. */
export function takeStep<K extends WalkStepKind>(ground: WalkGround, step: StepOf<K>): Promise<string> {
  const take: Take<K> = takes[step.kind as K];
  return take(ground, step);
}
