import { postgresqlExtensions } from "@holdfast/common/engine-catalog/postgresql-extensions.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import type { UpgradeObstacle, UpgradeObstacleCode } from "../../upgrade-facet.ts";
import { statisticsExtension } from "../additions.ts";
import { type DatabaseState, databaseStateSql, inEachDatabase, inShort, listDatabases } from "../database-list.ts";
import { type Session, withSession } from "../session.ts";
import { lackOf, roomFor } from "./room.ts";

interface Rule {
  readonly code: UpgradeObstacleCode;
  /** Answers the names of what stands against it. */
  readonly sql: string;
  readonly values?: readonly unknown[];
  message(names: string): string;
}

/** Of all databases together. */
const shared: readonly Rule[] = [
  {
    code: "prepared_transactions",
    sql: "SELECT gid AS name FROM pg_prepared_xacts ORDER BY gid",
    message: (names) => `Transactions are prepared and not ended: ${names}. Commit them or roll them back.`,
  },
  {
    code: "replication_slots",
    sql: "SELECT slot_name AS name FROM pg_replication_slots WHERE slot_type = 'logical' ORDER BY slot_name",
    message: (names) =>
      `Logical replication slots do not come along: ${names}. Drop them, and make them anew afterwards.`,
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
    message: (names) => `Databases are invalid, as their DROP DATABASE did not end: ${names}. Drop them.`,
  },
];

function inState(state: DatabaseState): string {
  return `SELECT datname AS name FROM pg_database WHERE ${databaseStateSql} = '${state}' AND datname <> 'template0' ORDER BY 1`;
}

/** Types that hold numbers of catalog rows which are others afterwards. */
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

/** Of each database; `name` is followed by the database's. */
const ofDatabase: readonly Rule[] = [
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
    message: (names) => `The newer image has no such extensions: ${names}. Drop them.`,
  },
];

/** The platform makes the extension anew (prepare-copy.ts), and nothing may hang on the one that goes. */
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
    `Views use ${statisticsExtension}, which is made anew: ${names}. Drop them, and make them again afterwards.`,
};

/** What pg_upgrade would refuse, found while the engine still serves; pg_upgrade itself looks once more before it begins. */
export async function check(
  deps: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<readonly UpgradeObstacle[]> {
  const found = new Map<Rule, string[]>();
  const note = (rule: Rule, names: readonly string[]) => found.set(rule, [...(found.get(rule) ?? []), ...names]);
  await withSession(instance, signal, async (session) => {
    for (const rule of shared) note(rule, await namesOf(session, rule));
  });
  await inEachDatabase(
    () => withSession(instance, signal, listDatabases),
    (database) =>
      withSession(
        instance,
        signal,
        async (session) => {
          for (const rule of [...ofDatabase, statisticsInUse]) {
            const names = await namesOf(session, rule);
            note(
              rule,
              names.map((name) => `${name} in ${database}`),
            );
          }
        },
        { database },
      ),
  );
  const lack = lackOf(await roomFor(deps, instance, signal));
  const obstacles = [...found].flatMap(([{ code, message }, names]): UpgradeObstacle[] =>
    names.length === 0 ? [] : [{ code, message: message(inShort(names)) }],
  );
  return lack === undefined ? obstacles : [...obstacles, { code: "no_room", message: lack }];
}

async function namesOf(session: Session, { sql, values = [] }: Rule): Promise<string[]> {
  return (await session.rows<{ name: string }>(sql, values)).map(({ name }) => name);
}
