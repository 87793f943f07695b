import { readdir, readFile } from "node:fs/promises";
import type pg from "pg";

const directory = new URL("./migrations/", import.meta.url);

/** Advisory lock of the migration; the same number on every controller and version. */
const lockId = 4_824_067;

/**
 * Applies each file of `migrations/` that the database lacks, in order, each in a transaction. Controllers that start
 * together wait for each other. A database that a newer version migrated stays unchanged.
 */
export async function migrate(client: pg.ClientBase): Promise<string[]> {
  await client.query("select pg_advisory_lock($1)", [lockId]);
  try {
    await client.query(
      "create table if not exists schema_version (step text primary key, applied_at timestamptz not null default now())",
    );
    const { rows } = await client.query<{ step: string }>("select step from schema_version");
    const seen = new Set(rows.map(({ step }) => step));
    const steps = (await readdir(directory)).filter((name) => name.endsWith(".sql")).toSorted();
    const missing = steps.filter((step) => !seen.has(step));
    for (const step of missing) await apply(client, step);
    return missing;
  } finally {
    await client.query("select pg_advisory_unlock($1)", [lockId]);
  }
}

async function apply(client: pg.ClientBase, step: string): Promise<void> {
  const sql = await readFile(new URL(step, directory), "utf8");
  await client.query("begin");
  try {
    await client.query(sql);
    await client.query("insert into schema_version (step) values ($1)", [step]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`migration ${step} failed`, { cause: error });
  }
}
