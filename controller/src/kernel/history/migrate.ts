import { readdir, readFile } from "node:fs/promises";
import type pg from "pg";
import { contributionPoint } from "../contribution-point.ts";

/** Migrations of one system: a folder with files `<date>-<name>.sql`, such as `2026-11-28-notes.sql`. */
export interface MigrationGroup {
  /** Prefix of the names of its steps. */
  readonly group: string;
  /** URL of the folder, with a slash at the end. */
  readonly directory: URL;
}

export const migrationGroups = contributionPoint<MigrationGroup>("migrations", { key: ({ group }) => group });

/** A file of SQL that is applied once. */
interface MigrationStep {
  /** Name of the step in the table `schema_version`. It never changes: a renamed step would be applied again. */
  readonly name: string;
  readonly file: URL;
}

/** The oldest migrations, of several groups; their names have numbers and no group. */
const numbered = new URL("./migrations/", import.meta.url);
const datedName = /^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.sql$/;

/** Advisory lock of the migration; the same number on every controller and version. */
const lockId = 4_824_067;

/** All steps in the order in which they are applied: numbered steps, then the steps of all groups by date. */
export async function migrationSteps(groups: readonly MigrationGroup[]): Promise<readonly MigrationStep[]> {
  const first = (await sqlFiles(numbered)).toSorted();
  const dated = await Promise.all(
    groups.map(async ({ group, directory }) => {
      const files = await sqlFiles(directory);
      for (const file of files)
        if (!datedName.test(file))
          throw new Error(
            `migration ${group}/${file}: its name has to be <date>-<name>.sql, as in 2026-11-28-notes.sql`,
          );
      return files.map((file) => ({ file, name: `${group}/${file}`, directory }));
    }),
  );
  const inOrder = dated.flat().toSorted((a, b) => compare(a.file, b.file) || compare(a.name, b.name));
  return [
    ...first.map((name) => ({ name, file: new URL(name, numbered) })),
    ...inOrder.map(({ name, file, directory }) => ({ name, file: new URL(file, directory) })),
  ];
}

/**
 * Applies each step that the database lacks, in order, each in a transaction. Controllers that start together wait for
 * each other. A database that a newer version migrated remains unchanged.
 */
export async function migrate(client: pg.ClientBase, groups: readonly MigrationGroup[]): Promise<string[]> {
  const steps = await migrationSteps(groups);
  await client.query("select pg_advisory_lock($1)", [lockId]);
  try {
    await client.query(
      "create table if not exists schema_version (step text primary key, applied_at timestamptz not null default now())",
    );
    const { rows } = await client.query<{ step: string }>("select step from schema_version");
    const applied = new Set(rows.map(({ step }) => step));
    const missing = steps.filter(({ name }) => !applied.has(name));
    for (const step of missing) await apply(client, step);
    return missing.map(({ name }) => name);
  } finally {
    await client.query("select pg_advisory_unlock($1)", [lockId]);
  }
}

async function apply(client: pg.ClientBase, { name, file }: MigrationStep): Promise<void> {
  const sql = await readFile(file, "utf8");
  await client.query("begin");
  try {
    await client.query(sql);
    await client.query("insert into schema_version (step) values ($1)", [name]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`migration ${name} failed`, { cause: error });
  }
}

async function sqlFiles(directory: URL): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith(".sql"));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
