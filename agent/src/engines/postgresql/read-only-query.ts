import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import type { ReadOnlyAnswer, ReadOnlyQuery, ReadOnlyQueryFacet } from "../insight-facets.ts";
import { extensionSchemasSql, strangeNameSql } from "./console-extensions.ts";
import { denied, deniedFunctionSql, deniedRelationSql, harmlessVolatile, madeCastSql } from "./console-policy.ts";
import { AnswerTooLarge, type ConsoleSession, withConsoleSession } from "./console-session.ts";
import { createGathering, type Gathering } from "./gathered-rows.ts";
import { isReserved } from "./layout.ts";
import { codeOf, messageOf } from "./session.ts";
import { consoleMemoryBytes, limitSession } from "./session-memory.ts";

const atOnce = 4;
const fetchRows = 100;
/** What the checks and the protocol take besides. */
const overheadBytes = 2 << 20;
let running = 0;

const declare = "DECLARE answer NO SCROLL CURSOR FOR ";

/** One judged statement in a read-only transaction of the console's own login. */
export const readOnlyQuery: ReadOnlyQueryFacet = {
  async run(instance, query, signal) {
    if (isReserved(query.database) || query.database.startsWith("template"))
      return refusal(`database "${query.database}" does not exist`);
    if (running >= atOnce) throw new EngineBusy(`${atOnce} queries of the console run already.`);
    running += 1;
    try {
      return await inTransaction(instance, query, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AnswerTooLarge) return refusal("One row of the answer is too large.");
      if (isOutOfMemory(error)) {
        const most = consoleMemoryBytes(instance) >> 20;
        return refusal(`The statement needs more memory than the ${most} MiB that one of the console may have.`);
      }
      // A code of five characters is the engine's word; all else is a fault of the way to it.
      if (!/^[0-9A-Z]{5}$/.test(codeOf(error))) throw error;
      return refusal(messageOf(error), { position: positionOf(error, query.sql) });
    } finally {
      running -= 1;
    }
  },
};

function refusal(message: string, { position = 0, name = "" } = {}): ReadOnlyAnswer {
  return { refusal: { message, position, name } };
}

function inTransaction(instance: Instance, query: ReadOnlyQuery, signal: AbortSignal): Promise<ReadOnlyAnswer> {
  const limits = {
    database: query.database,
    timeoutMs: query.timeoutMs,
    bytesMax: query.bytesMax * 2 + overheadBytes,
  };
  // The engine's own bound comes first; this one is for an engine that hangs.
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(query.timeoutMs + 2_000)]);
  return withConsoleSession(instance, limits, bounded, async (session) => {
    const [row] = await session.query("SELECT pg_backend_pid()");
    await limitSession(instance, row?.[0] ?? "", consoleMemoryBytes(instance), bounded);
    await session.query("BEGIN TRANSACTION READ ONLY");
    await lock(session, query.relations);
    const why = await whyNot(session, query);
    if (why !== undefined) return refusal(why.message, why);
    await lookInExtensions(session, query);
    const began = performance.now();
    const gathering = createGathering(query);
    try {
      await answer(session, query, gathering);
      await session.query("ROLLBACK");
    } catch (error) {
      // What came before a row, or a page, that was too much is an answer.
      const isTooMuch = error instanceof AnswerTooLarge || isOutOfMemory(error);
      if (!isTooMuch || gathering.rowCount === 0) throw error;
      gathering.cut();
    }
    if (gathering.isFull && gathering.rowCount === 0) throw new AnswerTooLarge("the first row is too large");
    return { ...gathering.answer(), executionMs: Math.round(performance.now() - began) };
  });
}

/** What is judged stays as it is until it was read: nobody replaces a view or a policy meanwhile. */
async function lock(session: ConsoleSession, relations: readonly string[]): Promise<void> {
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
  /** What it is about, as the query names it. */
  readonly name?: string;
}

/** Undefined when every name comes to something that may be used. */
async function whyNot(session: ConsoleSession, query: ReadOnlyQuery): Promise<Objection | undefined> {
  const { relations, qualified } = query;
  const lists = [harmlessVolatile, denied];
  const first = async (sql: string, values: readonly unknown[]) => (await session.query(sql, values))[0];
  const column = (name: "kind" | "schema" | "name") => qualified.map((each) => each[name]);
  const columns = [column("kind"), column("schema"), column("name")];
  const [kind, strange] = (qualified.length === 0 ? undefined : await first(strangeNameSql, columns)) ?? [];
  if (kind && strange) {
    const message = `The ${kind} ${strange} is not one of the engine's own, nor of an extension that the console knows.`;
    return { message, name: strange };
  }
  const functions = query.functions.concat(qualified.flatMap((each) => (each.kind === "function" ? each.name : [])));
  const [func] = (functions.length === 0 ? undefined : await first(deniedFunctionSql, [functions, ...lists])) ?? [];
  if (func) return { message: `The function ${func} is not among those that only read.`, name: func };
  const relation = relations.length === 0 ? undefined : await first(deniedRelationSql, [relations, ...lists]);
  if (relation !== undefined)
    return { message: `${relation[0]} ${relation[1]}.`, ...(relation[2] && { name: relation[2] }) };
  const cast = await first(madeCastSql, []);
  return (
    cast && { message: `The database has a cast of its own, from ${cast[0]}, which could run with any statement.` }
  );
}

/** Has names without a schema looked for in those of extensions too, where only the extension's own can be found by them. */
async function lookInExtensions(session: ConsoleSession, { functions, types }: ReadOnlyQuery): Promise<void> {
  const schemas = await session.query(extensionSchemasSql, [functions, types]);
  if (schemas.length === 0) return;
  const path = ["pg_catalog", ...schemas.map(([name]) => name), "pg_temp"];
  await session.query(`SET LOCAL search_path TO ${path.join(", ")}`);
}

/** Has the rows gathered, until there are enough. */
async function answer(session: ConsoleSession, { sql }: ReadOnlyQuery, gathering: Gathering): Promise<void> {
  if (!takesCursor(sql)) {
    const { columns } = await session.each(sql, gathering.take);
    return gathering.name(columns);
  }
  await session.query(`${declare}${sql}`);
  for (let fetched = fetchRows; fetched === fetchRows && !gathering.isFull; ) {
    const { columns, rowCount } = await session.each(`FETCH ${fetchRows} FROM answer`, gathering.take);
    gathering.name(columns);
    fetched = rowCount;
  }
}

/** The character of the statement that the engine means, from 1 on; 0 for none. */
function positionOf(error: unknown, sql: string): number {
  const { position } = error as { position?: string };
  return Math.max(Number(position ?? 0) - (takesCursor(sql) ? declare.length : 0), 0);
}

/** Of its own memory; shared memory that is full has the same code. */
function isOutOfMemory(error: unknown): boolean {
  return codeOf(error) === "53200" && messageOf(error) === "out of memory";
}

/** SHOW and EXPLAIN take none, and answer little. */
function takesCursor(sql: string): boolean {
  return !/^(SHOW|EXPLAIN)\b/i.test(sql);
}
