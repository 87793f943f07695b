import { isReservedDatabase, isReservedUser, platform } from "../layout.ts";
import { identifier, literal } from "../session.ts";
import { type ByteSession, byteText } from "./byte-session.ts";
import type { Value } from "../byte-connection.ts";
import type { KeyRange } from "./chunks.ts";
import {
  type AccountDefinition,
  type DatabaseDefinition,
  type Definitions,
  definitionsFormat,
  type DumpPosition,
  type ProgramDefinition,
  type ProgramKind,
} from "./dump-format.ts";
import type { Column } from "./row-text.ts";

/** A table whose rows are read; its definition is at the same index. */
export interface SourceTable {
  readonly database: string;
  readonly name: string;
  readonly columns: readonly Column[];
  /** Size of its files in bytes, as the engine estimates it. */
  readonly bytes: number;
  /** Integer column that its primary key begins with; undefined if there is none. */
  readonly keyColumn: string | undefined;
  /** False if the table's storage engine stores no rows, or loses them at each restart. */
  readonly hasRows: boolean;
  /** True if a snapshot has its rows. */
  readonly isTransactional: boolean;
}

type Row = ReadonlyMap<string, Value>;

const textOf = (row: Row, name: string): string => row.get(name)?.toString("utf8") ?? "";
const bytesOf = (row: Row, name: string): string => row.get(name)?.toString("latin1") ?? "";

const withoutRows: ReadonlySet<string> = new Set(["BLACKHOLE", "FEDERATED", "MEMORY", "MRG_MYISAM"]);

/** Reads the definitions of all objects that users created. The caller prevents changes by other sessions. */
export async function readDefinitions(
  session: ByteSession,
  position?: DumpPosition,
): Promise<{ readonly definitions: Definitions; readonly tables: readonly SourceTable[] }> {
  const [server] = await session.rows("SELECT VERSION() AS version");
  const tables = await readTables(session);
  const definitions: Definitions = {
    format: definitionsFormat,
    version: server === undefined ? "" : textOf(server, "version"),
    gtids: position?.gtids ?? "",
    ...(position && { log: { branch: position.branch, from: position.from, position: position.position } }),
    databases: await readDatabases(session),
    tables: await inTurn(tables, async ({ database, name, columns, isTransactional }) => ({
      database,
      name,
      sql: await showCreate(session, "TABLE", `${identifier(database)}.${identifier(name)}`, "Create Table"),
      columns: columns.map((column) => column.name),
      isTransactional,
    })),
    programs: await readPrograms(session),
    accounts: await readAccounts(session),
    marks: (await session.rows(`SELECT name, owner, mark FROM ${platform}.marks ORDER BY name`)).map((row) => ({
      name: textOf(row, "name"),
      owner: textOf(row, "owner"),
      mark: textOf(row, "mark"),
    })),
  };
  return { definitions, tables };
}

async function inTurn<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const value of values) results.push(await work(value));
  return results;
}

async function showCreate(session: ByteSession, kind: string, name: string, column: string): Promise<string> {
  const [row] = await session.rows(byteText(`SHOW CREATE ${kind} ${name}`));
  if (row === undefined) throw new Error(`the engine returned no definition of ${name}`);
  return bytesOf(row, column);
}

/** Rows of a statement that lists objects, without the platform's; its column `place` is the object's database. */
async function usersRows(session: ByteSession, sql: string): Promise<Row[]> {
  return (await session.rows(sql)).filter((row) => !isReservedDatabase(textOf(row, "place")));
}

async function readDatabases(session: ByteSession): Promise<DatabaseDefinition[]> {
  const rows = await usersRows(
    session,
    `SELECT s.schema_name AS place, s.default_collation_name AS ordering, e.options AS options
     FROM information_schema.schemata s
     LEFT JOIN information_schema.schemata_extensions e ON e.schema_name = s.schema_name ORDER BY s.schema_name`,
  );
  return inTurn(rows, async (row) => {
    const name = textOf(row, "place");
    return {
      name,
      sql: await showCreate(session, "DATABASE", identifier(name), "Create Database"),
      collation: textOf(row, "ordering"),
      isReadOnly: /READ ONLY=1/i.test(textOf(row, "options")),
    };
  });
}

async function readTables(session: ByteSession): Promise<SourceTable[]> {
  const rows = await usersRows(
    session,
    `SELECT table_schema AS place, table_name AS name, engine AS engine, data_length AS bytes
     FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY table_schema, table_name`,
  );
  const columns = new Map<string, Column[]>();
  const keys = new Map<string, string>();
  const listed = await usersRows(
    session,
    `SELECT c.table_schema AS place, c.table_name AS owner, c.column_name AS name, c.data_type AS type,
       s.column_name IS NOT NULL AND c.data_type LIKE '%int' AS divides
     FROM information_schema.columns c
     LEFT JOIN information_schema.statistics s ON s.table_schema = c.table_schema AND s.table_name = c.table_name
       AND s.index_name = 'PRIMARY' AND s.seq_in_index = 1 AND s.column_name = c.column_name
     WHERE c.generation_expression = '' ORDER BY c.table_schema, c.table_name, c.ordinal_position`,
  );
  const keyOf = (database: string, name: string) => JSON.stringify([database, name]);
  for (const row of listed) {
    const key = keyOf(textOf(row, "place"), textOf(row, "owner"));
    const column = { name: textOf(row, "name"), type: textOf(row, "type").toLowerCase() };
    columns.set(key, [...(columns.get(key) ?? []), column]);
    if (textOf(row, "divides") === "1") keys.set(key, column.name);
  }
  return rows.map((row) => {
    const [database, name] = [textOf(row, "place"), textOf(row, "name")];
    const key = keyOf(database, name);
    return {
      database,
      name,
      columns: columns.get(key) ?? [],
      bytes: Number(textOf(row, "bytes")),
      keyColumn: keys.get(key),
      hasRows: !withoutRows.has(textOf(row, "engine")),
      isTransactional: textOf(row, "engine") === "InnoDB",
    };
  });
}

/** Minimum and maximum of the column that divides the table into chunks; undefined for an empty table. */
export async function readKeyRange(
  session: ByteSession,
  { database, name, keyColumn = "" }: SourceTable,
): Promise<KeyRange | undefined> {
  const column = identifier(keyColumn);
  const [row] = await session.rows(
    byteText(`SELECT MIN(${column}) AS first, MAX(${column}) AS last FROM ${identifier(database)}.${identifier(name)}`),
  );
  const [first = "", last = ""] = row === undefined ? [] : [textOf(row, "first"), textOf(row, "last")];
  if (first === "" || last === "") return undefined;
  return { column: byteText(column), first: BigInt(first), last: BigInt(last) };
}

/** Query that lists the programs of each kind, and the result column of SHOW CREATE with the definition. */
const programs: Readonly<Record<ProgramKind, { readonly list: string; readonly column: string }>> = {
  view: {
    list: `SELECT table_schema AS place, table_name AS name FROM information_schema.views ORDER BY 1, 2`,
    column: "Create View",
  },
  procedure: {
    list: `SELECT routine_schema AS place, routine_name AS name FROM information_schema.routines
      WHERE routine_type = 'PROCEDURE' ORDER BY 1, 2`,
    column: "Create Procedure",
  },
  function: {
    list: `SELECT routine_schema AS place, routine_name AS name FROM information_schema.routines
      WHERE routine_type = 'FUNCTION' ORDER BY 1, 2`,
    column: "Create Function",
  },
  trigger: {
    // Triggers of one table with the same time and event run in the order of their creation.
    list: `SELECT trigger_schema AS place, trigger_name AS name FROM information_schema.triggers
      ORDER BY 1, event_object_table, event_manipulation, action_timing, action_order`,
    column: "SQL Original Statement",
  },
  event: {
    list: `SELECT event_schema AS place, event_name AS name, status AS state FROM information_schema.events ORDER BY 1, 2`,
    column: "Create Event",
  },
};

/** Variables that a program depends on, by the names of their columns. */
const programSettings = ["sql_mode", "time_zone", "character_set_client", "collation_connection"];

async function readPrograms(session: ByteSession): Promise<ProgramDefinition[]> {
  const found: ProgramDefinition[] = [];
  for (const [kind, { list, column }] of Object.entries(programs) as [ProgramKind, (typeof programs)[ProgramKind]][])
    for (const listed of await usersRows(session, list)) {
      const [database, name] = [textOf(listed, "place"), textOf(listed, "name")];
      const qualified = `${identifier(database)}.${identifier(name)}`;
      const [row] = await session.rows(byteText(`SHOW CREATE ${kind.toUpperCase()} ${qualified}`));
      const sql = row === undefined ? "" : bytesOf(row, column);
      if (row === undefined || sql === "")
        throw new Error(`the engine returned no definition of the ${kind} ${database}.${name}`);
      found.push({
        kind,
        database,
        name,
        sql,
        settings: Object.fromEntries(
          programSettings.filter((key) => row.has(key)).map((key) => [key, textOf(row, key)]),
        ),
        databaseCollation: textOf(row, "Database Collation"),
        isEnabled: textOf(listed, "state") === "ENABLED",
        ...(textOf(listed, "state").endsWith("SIDE_DISABLED") && { isReplicaDisabled: true }),
      });
    }
  return found;
}

const defaultRoleClause = / DEFAULT ROLE (?:`(?:[^`]|``)*`@`(?:[^`]|``)*`,?)+/;

async function readAccounts(session: ByteSession): Promise<AccountDefinition[]> {
  const rows = await session.rows(
    "SELECT user AS name, host AS host, account_locked AS locked FROM mysql.user ORDER BY user, host",
  );
  const users = rows.filter((row) => !isReservedUser(textOf(row, "name")));
  return inTurn(users, async (row) => {
    const [name, host] = [textOf(row, "name"), textOf(row, "host")];
    const account = `${literal(name)}@${literal(host)}`;
    const firstValues = async (sql: string) =>
      (await session.rows(byteText(sql))).map((line) => [...line.values()][0]?.toString("latin1") ?? "");
    const [sql = ""] = await firstValues(`SHOW CREATE USER ${account}`);
    const roles = await session.rows(
      byteText(
        `SELECT default_role_user AS name, default_role_host AS host FROM mysql.default_roles
         WHERE user = ${literal(name)} AND host = ${literal(host)} ORDER BY 1, 2`,
      ),
    );
    return {
      name,
      host,
      sql: sql.replace(defaultRoleClause, ""),
      grants: await firstValues(`SHOW GRANTS FOR ${account}`),
      defaultRoles: roles.map((role) => `${identifier(textOf(role, "name"))}@${identifier(textOf(role, "host"))}`),
      isLocked: textOf(row, "locked") === "Y",
    };
  });
}
