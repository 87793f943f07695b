import { identifier, literal, messageOf, numberOf } from "../session.ts";
import { type ByteSession, byteText } from "./byte-session.ts";
import {
  type AccountDefinition,
  type Definitions,
  type ProgramDefinition,
  readFrames,
  type RowCounts,
  type RowFrame,
} from "./dump-format.ts";
import type { PrivateServer } from "./private-server.ts";

/** Number of sessions that load rows. */
const writers = 3;

/** Creates all databases and tables, without rows. */
export async function createTables(session: ByteSession, { databases, tables }: Definitions): Promise<void> {
  for (const { sql } of databases) await session.run(sql);
  for (const { database, sql } of tables) {
    await session.run(byteText(`USE ${identifier(database)}`));
    await session.run(sql);
  }
}

/**
 * Loads a stream of rows by several sessions. Returns the number of rows by table. Throws if a number differs from the
 * one at the end of the stream.
 */
export async function loadRows(
  server: PrivateServer,
  { tables }: Definitions,
  stream: AsyncIterable<Uint8Array>,
): Promise<RowCounts> {
  const inserts = tables.map(({ database, name, columns }) =>
    byteText(`INSERT INTO ${identifier(database)}.${identifier(name)} (${columns.map(identifier).join(", ")}) VALUES `),
  );
  const frames = readFrames(stream);
  const loaded = new Map<number, number>();
  let expected: RowCounts | undefined;

  async function insert(session: ByteSession, { table, rows, values }: RowFrame): Promise<void> {
    const sql = inserts[table];
    if (sql === undefined) throw new Error(`the dump has rows of a table ${table} without a definition`);
    await session.run(sql + values.toString("latin1"));
    loaded.set(table, (loaded.get(table) ?? 0) + rows);
  }

  async function work(): Promise<void> {
    const session = await server.open();
    try {
      // A string in the dump has the bytes of the column's character set.
      await session.run("SET SESSION character_set_client = binary, collation_connection = binary");
      for (let next = await frames.next(); ; next = await frames.next()) {
        if (next.done === true) {
          expected ??= next.value;
          return;
        }
        await insert(session, next.value);
      }
    } catch (error) {
      // Ends the stream for the other sessions.
      await frames.return(new Map()).catch(() => undefined);
      throw error;
    } finally {
      session.close();
    }
  }

  const ends = await Promise.allSettled(Array.from({ length: writers }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  for (const [table, rows] of expected ?? []) {
    const found = loaded.get(table) ?? 0;
    const { database = "", name = String(table) } = tables[table] ?? {};
    if (found !== rows) throw new Error(`${found} of ${rows} rows of ${database}.${name} were loaded`);
  }
  return loaded;
}

/** Sentences about parts that cannot exist in a copy, since they did not work in the source either. */
type Warnings = string[];

/**
 * Creates views, routines, triggers and events, with the settings of their authors. Programs depend on each other, so
 * failed ones are tried again while others succeed. A program that refers to an object that does not exist was broken
 * in the source too: it is left out, with a warning.
 */
export async function createPrograms(
  session: ByteSession,
  { programs: all, databases }: Definitions,
  { areEventsDisabled }: { readonly areEventsDisabled: boolean },
): Promise<Warnings> {
  const programs = areEventsDisabled ? all.map(withoutStart) : all;
  const collations = new Map(databases.map(({ name, collation }) => [name, collation]));
  const restore = settingsSql(await readSettings(session));
  let missing: { readonly program: ProgramDefinition; readonly error: unknown }[] = [];
  for (let remaining = programs; ; remaining = missing.map(({ program }) => program)) {
    missing = [];
    for (const program of remaining) {
      try {
        await createProgram(session, program, collations.get(program.database) ?? "");
      } catch (error) {
        if (numberOf(error) === 0 || transientErrors.includes(numberOf(error))) throw error;
        missing.push({ program, error });
      } finally {
        await session.run(restore).catch(() => undefined);
      }
    }
    if (missing.length === 0 || missing.length === remaining.length) break;
  }
  return missing.map(
    ({ program: { kind, database, name }, error }) =>
      `The ${kind} ${database}.${name} does not work in the source and was left out: ${messageOf(error)}`,
  );
}

const quotedName = "`(?:[^`]|``)*`";
const eventStatus = new RegExp(
  `^(CREATE DEFINER=${quotedName}@${quotedName} EVENT ${quotedName} ON SCHEDULE .*? ON COMPLETION (?:NOT )?PRESERVE) ENABLE\\b`,
  "s",
);

/** Disables an event in its definition: ALTER EVENT would replace the event's author. */
function withoutStart(program: ProgramDefinition): ProgramDefinition {
  return program.kind === "event" ? { ...program, sql: program.sql.replace(eventStatus, "$1 DISABLE") } : program;
}

const eventDefiner = new RegExp(`^CREATE DEFINER=(${quotedName}@${quotedName}) EVENT `);

/** Enables or disables an event, which retains its author and settings. */
export async function alterEvent(
  session: ByteSession,
  { database, name, sql, settings }: ProgramDefinition,
  state: "ENABLE" | "DISABLE",
): Promise<void> {
  const definer = eventDefiner.exec(sql)?.[1];
  if (definer === undefined) throw new Error(`the definition of the event ${database}.${name} names no author`);
  const restore = settingsSql(await readSettings(session));
  await session.run(settingsSql(settings));
  try {
    const event = byteText(`${identifier(database)}.${identifier(name)}`);
    await session.run(`ALTER DEFINER=${definer} EVENT ${event} ${state}`);
  } finally {
    await session.run(restore);
  }
}

/** Error numbers that do not depend on the program: memory, disk, locks, time limits, shutdown. */
const transientErrors = [1021, 1037, 1038, 1041, 1053, 1114, 1205, 1317, 3024];

const programVariables = ["sql_mode", "time_zone", "character_set_client", "collation_connection"];

async function readSettings(session: ByteSession): Promise<Readonly<Record<string, string>>> {
  const list = programVariables.map((name) => `@@SESSION.${name} AS ${name}`).join(", ");
  const [row] = await session.rows(`SELECT ${list}`);
  return Object.fromEntries(programVariables.map((name) => [name, row?.get(name)?.toString() ?? ""]));
}

function settingsSql(settings: Readonly<Record<string, string>>): string {
  const list = Object.entries(settings).map(([name, value]) => `SESSION ${name} = ${literal(value)}`);
  return `SET ${list.join(", ")}`;
}

async function createProgram(session: ByteSession, program: ProgramDefinition, collation: string): Promise<void> {
  const { database, sql, settings, databaseCollation } = program;
  const collate = (name: string) => session.run(byteText(`ALTER DATABASE ${identifier(database)} COLLATE ${name}`));
  const isOther = databaseCollation !== "" && databaseCollation !== collation;
  await session.run(byteText(`USE ${identifier(database)}`));
  // Parameters of routines have the database's collation at their creation.
  if (isOther) await collate(databaseCollation);
  try {
    await session.run(settingsSql(settings));
    await session.run(sql);
  } finally {
    if (isOther) await collate(collation);
  }
}

/** Creates the accounts without privileges: programs name them as definers. */
export async function createAccounts(session: ByteSession, accounts: readonly AccountDefinition[]): Promise<void> {
  for (const { sql } of accounts) await session.run(sql);
}

/** A privilege on something that does not exist, or does not exist yet. */
interface PendingGrant {
  readonly account: string;
  readonly sql: string;
}

/** ER_NO_SUCH_TABLE, ER_BAD_FIELD_ERROR and ER_SP_DOES_NOT_EXIST: a privilege remains when its table is dropped. */
const absentObjectErrors = [1146, 1054, 1305];

/**
 * Grants the privileges of the accounts. Called before `createPrograms`, since programs may need their authors'
 * privileges. Returns the privileges on views and routines, which `grantPending` grants after these exist.
 */
export async function grantPrivileges(
  session: ByteSession,
  accounts: readonly AccountDefinition[],
): Promise<PendingGrant[]> {
  const pending: PendingGrant[] = [];
  for (const { name, host, grants, defaultRoles } of accounts) {
    const account = `${literal(name)}@${literal(host)}`;
    for (const sql of grants) if ((await refusalOf(session, sql)) !== undefined) pending.push({ account, sql });
    if (defaultRoles.length > 0)
      await session.run(byteText(`ALTER USER ${account} DEFAULT ROLE ${defaultRoles.join(", ")}`));
  }
  return pending;
}

export async function grantPending(session: ByteSession, pending: readonly PendingGrant[]): Promise<Warnings> {
  const warnings: Warnings = [];
  for (const { account, sql } of pending) {
    const refusal = await refusalOf(session, sql);
    if (refusal !== undefined) warnings.push(`A privilege of ${account} was left out: ${refusal}`);
  }
  return warnings;
}

/** Message of a grant on something that does not exist; undefined for one that succeeded. */
async function refusalOf(session: ByteSession, sql: string): Promise<string | undefined> {
  try {
    await session.run(sql);
    return undefined;
  } catch (error) {
    if (!absentObjectErrors.includes(numberOf(error))) throw error;
    return messageOf(error);
  }
}
