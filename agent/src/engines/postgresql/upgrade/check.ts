import { postgresqlExtensions } from "@holdfast/common/engine-catalog/postgresql-extensions.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { summarizeNames } from "../../summarize-names.ts";
import type { UpgradeObstacle } from "../../upgrade-facet.ts";
import { statisticsExtension } from "../required-objects.ts";
import { type DatabaseState, databaseStateSql, inEachDatabase, listDatabases } from "../database-list.ts";
import { type Session, withSession } from "../session.ts";
import { shortageOf, measureCopySpace } from "./copy-space.ts";

type ObstacleCode =
  | "no_room"
  | "prepared_transactions"
  | "replication_slots"
  | "closed_databases"
  | "invalid_databases"
  | "column_types"
  | "not_null_constraints"
  | "extensions"
  | "statistics_views";

interface Obstacle extends UpgradeObstacle {
  readonly code: ObstacleCode;
}

interface Rule {
  readonly code: ObstacleCode;
  /** Returns the names of the objects at fault as `name`. */
  readonly sql: string;
  readonly values?: readonly unknown[];
  message(names: string): string;
}

/** Rules over shared catalogs. */
const sharedRules: readonly Rule[] = [
  {
    code: "prepared_transactions",
    sql: "SELECT gid AS name FROM pg_prepared_xacts ORDER BY gid",
    message: (names) => `Transactions are prepared and not ended: ${names}. Commit them or roll them back.`,
  },
  {
    code: "replication_slots",
    sql: "SELECT slot_name AS name FROM pg_replication_slots WHERE slot_type = 'logical' ORDER BY slot_name",
    message: (names) =>
      `Logical replication slots are not upgraded: ${names}. Drop them, and create them again afterwards.`,
  },
  {
    code: "closed_databases",
    sql: inState("closed"),
    message: (names) =>
      `Databases that allow no connections cannot be read: ${names}. Allow them, or drop the databases.`,
  },
  {
    code: "invalid_databases",
    sql: inState("invalid"),
    message: (names) => `Databases are invalid, as their DROP DATABASE was interrupted: ${names}. Drop them.`,
  },
];

function inState(state: DatabaseState): string {
  return `SELECT datname AS name FROM pg_database WHERE ${databaseStateSql} = '${state}' AND datname <> 'template0' ORDER BY 1`;
}

/** Types that store OIDs of catalog rows, which change with an upgrade (pg_upgrade: check_for_data_types_usage). */
const unstableTypes = [
  "regcollation",
  "regconfig",
  "regdictionary",
  "regnamespace",
  "regoper",
  "regoperator",
  "regproc",
  "regprocedure",
];

/** Rules over each database. The database's name is appended to each `name`. */
const databaseRules: readonly Rule[] = [
  {
    code: "column_types",
    sql: `SELECT c.oid::regclass || '.' || quote_ident(a.attname) AS name
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relkind IN ('r', 'm', 'i') AND NOT a.attisdropped AND c.relpersistence <> 't' AND c.oid >= 16384
        AND a.atttypid IN (SELECT oid FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace
          AND (typname = ANY ($1::text[]) OR typelem IN (SELECT oid FROM pg_type WHERE typname = ANY ($1::text[]))))
      ORDER BY 1`,
    values: [unstableTypes],
    message: (names) =>
      `Columns have a type that cannot be upgraded: ${names}. Change it to text, or drop the columns.`,
  },
  {
    code: "not_null_constraints",
    sql: `SELECT i.inhrelid::regclass || '.' || quote_ident(child.attname) AS name
      FROM pg_inherits i
        JOIN pg_attribute parent ON parent.attrelid = i.inhparent AND parent.attnum > 0 AND parent.attnotnull
        JOIN pg_attribute child ON child.attrelid = i.inhrelid AND child.attname = parent.attname
      WHERE NOT child.attnotnull AND NOT child.attisdropped ORDER BY 1`,
    message: (names) => `Columns may be null although they inherit NOT NULL: ${names}. ALTER TABLE ... SET NOT NULL.`,
  },
  {
    code: "extensions",
    sql: "SELECT extname AS name FROM pg_extension WHERE extname <> ALL ($1::text[]) ORDER BY extname",
    values: [postgresqlExtensions],
    message: (names) => `The newer image lacks extensions: ${names}. Drop them.`,
  },
];

/** The platform recreates the extension (`prepareCopy`), so nothing may depend on the one that is dropped. */
const statisticsInUse: Rule = {
  code: "statistics_views",
  sql: `SELECT DISTINCT c.oid::regclass::text AS name
    FROM pg_extension e
      JOIN pg_depend m ON m.refclassid = 'pg_extension'::regclass AND m.refobjid = e.oid AND m.deptype = 'e'
      JOIN pg_depend d ON d.refclassid = m.classid AND d.refobjid = m.objid AND d.classid = 'pg_rewrite'::regclass
      JOIN pg_rewrite r ON r.oid = d.objid
      JOIN pg_class c ON c.oid = r.ev_class
    WHERE e.extname = '${statisticsExtension}' AND e.oid < 16384 AND NOT EXISTS (
      SELECT FROM pg_depend own WHERE own.classid = 'pg_class'::regclass AND own.objid = c.oid AND own.deptype = 'e')
    ORDER BY 1`,
  message: (names) =>
    `Views use ${statisticsExtension}, which is recreated: ${names}. Drop them, and create them again afterwards.`,
};

/** Finds what pg_upgrade would refuse while the engine still serves. pg_upgrade repeats the checks before it begins. */
export async function check(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<readonly Obstacle[]> {
  const found = new Map<Rule, string[]>();
  const addNames = (rule: Rule, names: readonly string[]) => found.set(rule, [...(found.get(rule) ?? []), ...names]);
  await withSession(instance, signal, async (session) => {
    for (const rule of sharedRules) addNames(rule, await namesOf(session, rule));
  });
  await inEachDatabase(
    () => withSession(instance, signal, listDatabases),
    (database) =>
      withSession(
        instance,
        signal,
        async (session) => {
          for (const rule of [...databaseRules, statisticsInUse]) {
            const names = await namesOf(session, rule);
            addNames(
              rule,
              names.map((name) => `${name} in ${database}`),
            );
          }
        },
        { database },
      ),
  );
  const shortage = shortageOf(await measureCopySpace(deps, instance, signal));
  const obstacles = [...found].flatMap(([{ code, message }, names]): Obstacle[] =>
    names.length === 0 ? [] : [{ code, message: message(summarizeNames(names)) }],
  );
  return shortage === undefined ? obstacles : [...obstacles, { code: "no_room", message: shortage }];
}

async function namesOf(session: Session, { sql, values = [] }: Rule): Promise<string[]> {
  return (await session.rows<{ name: string }>(sql, values)).map(({ name }) => name);
}
