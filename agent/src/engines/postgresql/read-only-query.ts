import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Instance } from "../engine-driver.ts";
import { type ConsoleValue, createRowCollector, type RowCollector } from "../console-rows.ts";
import { EngineBusy } from "../engine-errors.ts";
import type { ReadOnlyResult, ReadOnlyQuery, ReadOnlyQueryFacet } from "../insight-facets.ts";
import { extensionSchemasSql, disallowedNameSql } from "./console-extensions.ts";
import {
  deniedFunctions,
  deniedFunctionSql,
  deniedRelationSql,
  allowedVolatileFunctions,
  userCastSql,
} from "./console-policy.ts";
import {
  type Column,
  type ConsoleSession,
  ResultTooLarge,
  type TextRow,
  withConsoleSession,
} from "./console-session.ts";
import { isReservedDatabase } from "./layout.ts";
import { codeOf, messageOf } from "./session.ts";
import { consoleMemoryBytes, limitSession } from "./session-memory.ts";
import { exceedsTemporaryFiles, limitConsoleFiles } from "./temporary-files.ts";

const maxConcurrent = 4;
/** The engine stores the rows of one FETCH before it sends them: their number grows while the rows are small. */
const fetchRowsMax = 100;
/** Bytes for the checks and the protocol, on top of the result. */
const overheadBytes = 2 << 20;
/** An agent runs a single engine. */
const semaphore = createSemaphore(maxConcurrent, {
  waitingMax: 0,
  refusal: () => new EngineBusy(`${maxConcurrent} console queries are running already.`),
});

/** too_many_connections and cannot_connect_now: the engine has no session for any statement. */
const noSession = ["53300", "57P03"];

const declare = "DECLARE result NO SCROLL CURSOR FOR ";

/**
 * Runs one checked statement of the query console in a read-only transaction of the console's login. The controller has
 * parsed the statement; here the names in it are resolved and checked against console-policy.ts in the same
 * transaction.
 */
export const readOnlyQuery: ReadOnlyQueryFacet = {
  async run(instance, query, signal) {
    if (isReservedDatabase(query.database)) return refusal(`database "${query.database}" does not exist`);
    try {
      return await semaphore.run(() => inTransaction(instance, query, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ResultTooLarge) return refusal("A row of the result is too large.");
      if (isOutOfMemory(error)) {
        const limitMib = consoleMemoryBytes(instance) >> 20;
        return refusal(`The statement needs more memory than the ${limitMib} MiB that a console statement may use.`);
      }
      if (noSession.includes(codeOf(error))) throw new EngineBusy(messageOf(error), { cause: error });
      // A code of five characters is an SQLSTATE of the engine; other errors are failures of the connection.
      if (!/^[0-9A-Z]{5}$/.test(codeOf(error))) throw error;
      return refusal(messageOf(error), { position: positionOf(error, query.sql) });
    }
  },
};

function refusal(message: string, { position = 0, name = "" } = {}): ReadOnlyResult {
  return { refusal: { message, position, name } };
}

async function inTransaction(instance: Instance, query: ReadOnlyQuery, signal: AbortSignal): Promise<ReadOnlyResult> {
  const limits = {
    database: query.database,
    timeoutMs: query.timeoutMs,
    bytesMax: query.bytesMax * 2 + overheadBytes,
  };
  // Later than the engine's own timeout, for an engine that hangs.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(query.timeoutMs + 2_000)]);
  const filesMib = await limitConsoleFiles(instance, bounded);
  return withConsoleSession(instance, limits, bounded, async (session) => {
    const [row] = await session.query("SELECT pg_backend_pid()");
    await limitSession(instance, row?.[0] ?? "", consoleMemoryBytes(instance), bounded);
    await session.query("BEGIN TRANSACTION READ ONLY");
    await lockRelations(session, query.relations);
    const objection = await objectionTo(session, query);
    if (objection !== undefined) return refusal(objection.message, objection);
    await addExtensionSchemas(session, query);
    const startedMs = performance.now();
    const rows = createRowCollector(query);
    try {
      await runStatement(session, query, rows);
      await session.query("ROLLBACK");
    } catch (error) {
      // Rows before the one that exceeded a limit are a valid, truncated result.
      const exceedsLimit = error instanceof ResultTooLarge || isOutOfMemory(error) || exceedsTemporaryFiles(error);
      if (exceedsTemporaryFiles(error) && rows.rowCount === 0) return refusal(tooLargeFiles(filesMib));
      if (!exceedsLimit || rows.rowCount === 0) throw error;
      rows.truncate();
    }
    if (rows.isFull && rows.rowCount === 0) throw new ResultTooLarge("the first row is too large");
    return { ...rows.result(), executionMs: Math.round(performance.now() - startedMs) };
  });
}

function tooLargeFiles(limitMib: number): string {
  return limitMib === 0
    ? "The statement needs temporary files, and the disk of the service is too full for them."
    : `The statement needs more than the ${limitMib} MiB of temporary files that a console statement may use now.`;
}

/** Locks relations that are checked, so that a view or policy cannot be replaced before it is read. */
async function lockRelations(session: ConsoleSession, relations: readonly string[]): Promise<void> {
  if (relations.length === 0) return;
  const rows = await session.query(
    `SELECT DISTINCT c.oid::regclass::text FROM unnest($1::text[]) AS name JOIN pg_class c ON c.oid = to_regclass(name)
     WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v')`,
    [relations],
  );
  for (const [name] of rows) await session.query(`LOCK TABLE ${name} IN ACCESS SHARE MODE`);
}

interface Objection {
  readonly message: string;
  /** The name at fault, as in the query. */
  readonly name?: string;
}

/** Undefined if every name in the query resolves to something that is allowed. */
async function objectionTo(session: ConsoleSession, query: ReadOnlyQuery): Promise<Objection | undefined> {
  const { relations, qualified } = query;
  const lists = [allowedVolatileFunctions, deniedFunctions];
  const first = async (sql: string, values: readonly unknown[]) => (await session.query(sql, values))[0];
  const column = (name: "kind" | "schema" | "name") => qualified.map((each) => each[name]);
  const columns = [column("kind"), column("schema"), column("name")];
  const [kind, disallowed] = (qualified.length === 0 ? undefined : await first(disallowedNameSql, columns)) ?? [];
  if (kind && disallowed) {
    const message = `The ${kind} ${disallowed} belongs neither to the engine nor to an extension that the console allows.`;
    return { message, name: disallowed };
  }
  const functions = query.functions.concat(qualified.flatMap((each) => (each.kind === "function" ? each.name : [])));
  const [func] = (functions.length === 0 ? undefined : await first(deniedFunctionSql, [functions, ...lists])) ?? [];
  if (func) return { message: `The function ${func} is not among those that only read.`, name: func };
  const relation = relations.length === 0 ? undefined : await first(deniedRelationSql, [relations, ...lists]);
  if (relation !== undefined)
    return { message: `${relation[0]} ${relation[1]}.`, ...(relation[2] && { name: relation[2] }) };
  const cast = await first(userCastSql, []);
  return (
    cast && { message: `The database has a user-defined cast, from ${cast[0]}, which could run with any statement.` }
  );
}

/** Adds schemas of extensions to the search path, where names can only resolve to the extension's own objects. */
async function addExtensionSchemas(session: ConsoleSession, { functions, types }: ReadOnlyQuery): Promise<void> {
  const schemas = await session.query(extensionSchemasSql, [functions, types]);
  if (schemas.length === 0) return;
  const path = ["pg_catalog", ...schemas.map(([name]) => name), "pg_temp"];
  await session.query(`SET LOCAL search_path TO ${path.join(", ")}`);
}

/** Runs the statement and collects rows up to the limits. */
async function runStatement(session: ConsoleSession, { sql }: ReadOnlyQuery, rows: RowCollector): Promise<void> {
  const setColumns = (columns: readonly Column[]) => rows.setColumns(columns.map(({ name }) => name));
  // A truncated result has the columns of its rows.
  const take = (row: TextRow, columns: readonly Column[]) => {
    setColumns(columns);
    rows.take(consoleRow(row, columns));
  };
  if (!takesCursor(sql)) return setColumns((await session.each(sql, take)).columns);
  await session.query(`${declare}${sql}`);
  for (let count = 1, isComplete = false; !isComplete && !rows.isFull; count = Math.min(count * 2, fetchRowsMax)) {
    const { columns, rowCount } = await session.each(`FETCH ${count} FROM result`, take);
    setColumns(columns);
    isComplete = rowCount < count;
  }
}

/** Position of the engine's error in the user's statement, from 1 on; 0 for none. */
function positionOf(error: unknown, sql: string): number {
  const { position } = error as { position?: string };
  return Math.max(Number(position ?? 0) - (takesCursor(sql) ? declare.length : 0), 0);
}

/** True for exhausted process memory. Exhausted shared memory has the same code and another message. */
function isOutOfMemory(error: unknown): boolean {
  return codeOf(error) === "53200" && messageOf(error) === "out of memory";
}

/** SHOW and EXPLAIN cannot be declared as cursors; their results are small. */
function takesCursor(sql: string): boolean {
  return !/^(SHOW|EXPLAIN)\b/i.test(sql);
}

/** OIDs of types whose texts are JSON numbers: int2, int4, oid. */
const integers: ReadonlySet<number> = new Set([21, 23, 26]);
/** OIDs of float4 and float8. */
const floats: ReadonlySet<number> = new Set([700, 701]);
const boolean = 16;
const timestamp = 1114;
const timestamptz = 1184;

/**
 * Converts a value for the result's JSON: numbers that JSON holds exactly and booleans as such, everything else as
 * a string. Times are in the format of RFC 3339, times with a time zone in UTC; infinity and years BC remain in the
 * engine's format.
 */
function consoleValue(type: number, text: string | null): ConsoleValue {
  if (text === null) return null;
  if (integers.has(type)) return Number(text);
  if (floats.has(type)) return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === boolean) return text === "t";
  if (type === timestamp || type === timestamptz) {
    const found = /^(\d{4,6}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)(\+00)?$/.exec(text);
    if (found !== null) return `${found[1]}T${found[2]}${type === timestamptz ? "Z" : ""}`;
  }
  return text;
}

/** Converts a row for the result's JSON. */
function consoleRow(row: TextRow, columns: readonly Column[]): ConsoleValue[] {
  return row.map((value, index) => consoleValue(columns[index]?.type ?? 0, value));
}
