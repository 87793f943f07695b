import { setTimeout as delay } from "node:timers/promises";
import { qualified } from "../bind/object-name.ts";
import type { ExecuteStatement, Expression, Insert, Predicate, Statement, StatementBody } from "../parse/ast.ts";
import { announceBulkLoad } from "./bulk-load.ts";
import { execute } from "./calls.ts";
import { closeCursors, runCursorStatement } from "./cursors.ts";
import { inOwnDatabase, runDatabaseStatement } from "./databases.ts";
import { declareTable } from "./table-parameters.ts";
import { endsBatch, endsTransaction, sqlErrorOf } from "./errors.ts";
import { evaluate, evaluatePredicate } from "./evaluation.ts";
import { newCallFrame } from "./call-frame.ts";
import { insertResults } from "./insert-execute.ts";
import { raise, thrownError } from "./raised-errors.ts";
import type { RequestContext } from "./request-context.ts";
import { setOption } from "./set-options.ts";
import { SqlError } from "./sql-error.ts";
import { createTable, runDdl } from "./definitions.ts";
import { runDml } from "./statements.ts";
import { doomedTransactionError } from "./transaction.ts";

/** Max nesting of calls of procedures and dynamic SQL. */
const nestingMax = 32;

/** Depth of a call inside this frame; error 217 beyond the maximum. */
export function depthInside({ frame }: Pick<RequestContext, "frame">): number {
  if (frame.depth >= nestingMax)
    throw new SqlError(217, `Maximum nesting level of calls exceeded (limit ${nestingMax}).`);
  return frame.depth + 1;
}

/** Statement to continue with; `status` is the return value of the procedure. */
type Outcome = "next" | "break" | "continue" | { readonly status: number };

/** Parses and runs a batch. Errors are written to the results; returns false if one ended the batch. */
export async function runBatch(text: string, request: RequestContext): Promise<boolean> {
  let statements: readonly Statement[];
  try {
    statements = request.session.usage.cache.parse(text, request.session.options.quotedIdentifier);
  } catch (error) {
    reportError(sqlErrorOf(error, 1), request);
    return false;
  }
  try {
    await runStatements(statements, request);
    return true;
  } catch (error) {
    if (request.signal.aborted) throw error;
    reportError(sqlErrorOf(error, 0), request);
    return false;
  } finally {
    await closeCursors(request);
    await dropTableVariables(request);
    if (request.frame.depth === 0 && request.session.transaction.isDoomed && !request.signal.aborted) {
      await request.session.transaction.rollback(request.results);
      reportError(
        new SqlError(3998, "The batch ended with a transaction that cannot be committed; it was rolled back."),
        request,
      );
    }
  }
}

/** Runs the statements of a procedure in its frame; returns its status. The tables of the frame are dropped. */
export async function runProcedure(statements: readonly Statement[], request: RequestContext): Promise<number> {
  try {
    const outcome = await runStatements(statements, request);
    return typeof outcome === "object" ? outcome.status : 0;
  } finally {
    await closeCursors(request);
    await dropTables(request, [...request.frame.temporaryTables]);
    await dropTableVariables(request);
  }
}

function reportError(error: SqlError, { session, results }: RequestContext): void {
  session.lastError = error.number;
  session.rowCount = 0;
  results.error(error);
  results.done({ isError: true });
}

export function dropTableVariables(request: RequestContext): Promise<void> {
  const tables = [...request.frame.tableVariables.values()].filter(({ isBorrowed }) => isBorrowed !== true);
  return dropTables(
    request,
    tables.map(({ name }) => name),
  );
}

async function dropTables({ session, signal }: RequestContext, names: readonly string[]): Promise<void> {
  if (names.length === 0 || signal.aborted || session.transaction.isDoomed || session.backend.hasFailed) return;
  for (const name of names)
    await session.backend.script(`DROP TABLE IF EXISTS ${qualified({ schema: "pg_temp", name })}`);
  session.catalog.clear();
}

async function runStatements(statements: readonly Statement[], request: RequestContext): Promise<Outcome> {
  for (const statement of statements) {
    const outcome = await runGuarded(statement, request);
    if (outcome !== "next") return outcome;
  }
  return "next";
}

/** A failed statement outside of TRY is reported, and the next one runs unless the error ends the batch. */
async function runGuarded(statement: Statement, request: RequestContext): Promise<Outcome> {
  request.signal.throwIfAborted();
  const { session } = request;
  try {
    // Statements of control flow contain others, whose types may come into being before they run.
    const isSimple = !["if", "while", "block", "try"].includes(statement.body.kind);
    return await runStatement(isSimple ? await session.types.resolve(statement) : statement, request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    const failure = sqlErrorOf(error, statement.line);
    failure.procedure ??= request.frame.procedure;
    const isInTry = session.tryDepth > 0;
    if (isInTry) throw failure;
    const { transaction } = session;
    const aborts = session.options.xactAbort && failure.severity > 10 && !isRaised(statement.body);
    if (transaction.count > 0 && (aborts || endsTransaction(failure))) await transaction.rollback(request.results);
    if (aborts || endsBatch(failure) || failure.isThrown) throw failure;
    reportError(failure, request);
    return "next";
  }
}

/** RAISERROR does not obey XACT_ABORT. */
function isRaised({ kind }: StatementBody): boolean {
  return kind === "raiserror";
}

async function runStatement(statement: Statement, request: RequestContext): Promise<Outcome> {
  const { body, line } = statement;
  const { session, results, frame } = request;
  const { options } = session;
  if ((options.noExec || (options.fmtOnly && body.kind !== "query")) && body.kind !== "setOption") return "next";
  switch (body.kind) {
    case "query":
    case "insert":
    case "update":
    case "delete":
    case "merge":
      await beginImplicitly(request);
      if (session.transaction.isDoomed && body.kind !== "query") throw doomedTransactionError();
      if (body.kind === "insert" && isExecute(body.source)) {
        const { source } = body;
        await insertResults(body, line, request, async (inner) => {
          await runStatement({ body: source, line }, inner);
        });
        return "next";
      }
      await session.transaction.withStatementSavepoint(() => runDml(body, line, request));
      return "next";
    case "createTable":
    case "alterTable":
    case "createIndex":
    case "createView":
    case "createSchema":
    case "createSequence":
    case "createProcedure":
    case "createModule":
    case "createType":
    case "grant":
    case "drop":
    case "dropIndex":
    case "truncate":
      if (session.transaction.isDoomed) throw doomedTransactionError();
      await session.transaction.withStatementSavepoint(() => runDdl(body, line, request));
      results.done({});
      return "next";
    case "declare":
      for (const { name, type, value } of body.variables) {
        if (frame.variables.has(name.toLowerCase()) || frame.tableVariables.has(name.toLowerCase()))
          throw new SqlError(134, `The variable name '${name}' has already been declared.`, { severity: 15, line });
        if (type.table !== undefined) {
          await declareTable(name, type.table, request);
          continue;
        }
        frame.variables.set(name.toLowerCase(), { type, value: null });
        if (value !== undefined) await assign(name, value, request);
      }
      return "next";
    case "declareTable": {
      const name = `${body.name.toLowerCase()}:${session.nextTemporary()}`;
      await createTable({ schema: "pg_temp", name, written: body.name }, body.columns, body.constraints, request);
      frame.tableVariables.set(body.name.toLowerCase(), { name });
      return "next";
    }
    case "set":
      await assign(body.name, body.expression, request);
      return "next";
    case "setOption":
      for (const option of body.options) setOption(session.options, option, body.value);
      if (body.options.includes("LOCK_TIMEOUT"))
        await session.transaction.withStatementSavepoint(() =>
          session.backend.script(`SET lock_timeout = ${Math.max(0, session.options.lockTimeoutMs)}`),
        );
      return "next";
    case "isolation":
      session.transaction.isolation = isolationOf(body.level);
      // The view sys.dm_exec_sessions has the level.
      await session.transaction.withStatementSavepoint(() =>
        session.backend.query("SELECT set_config('holdfast_tsql.isolation', $1, false)", [
          session.transaction.isolation,
        ]),
      );
      return "next";
    case "identityInsert": {
      const context = session.context(frame);
      const name = context.objectName(body.path, line);
      await session.catalog.load([name]);
      session.identityInsert = body.isOn ? qualified(context.table(body.path, line)) : undefined;
      return "next";
    }
    case "if":
      if (await evaluatePredicate(body.condition, request)) return runGuarded(body.consequent, request);
      return body.otherwise === undefined ? "next" : runGuarded(body.otherwise, request);
    case "while":
      return runWhile(body.condition, body.body, request);
    case "block":
      return runStatements(body.statements, request);
    case "try":
      return runTry(body.body, body.handler, request);
    case "break":
      return "break";
    case "continue":
      return "continue";
    case "return": {
      const value = body.expression === undefined ? "0" : await evaluate(body.expression, request, { name: "int" });
      return { status: Number(value ?? 0) };
    }
    case "print": {
      const message = (await evaluate(body.expression, request, { name: "nvarchar", length: 4_000 })) ?? "";
      results.message({ number: 0, state: 1, severity: 0, message, line });
      return "next";
    }
    case "raiserror":
      await raise(body.arguments, body.options, line, request);
      return "next";
    case "throw":
      throw Object.assign(await thrownError(body.arguments, line, request), { isThrown: true });
    case "begin":
      await session.transaction.begin(results, await transactionName(body.name, request));
      results.done({});
      return "next";
    case "commit":
      await session.transaction.commit(results);
      results.done({});
      return "next";
    case "rollback":
      await session.transaction.rollback(results, await transactionName(body.name, request));
      results.done({});
      return "next";
    case "save": {
      const name = await transactionName(body.name, request);
      await session.transaction.save(name ?? "");
      return "next";
    }
    case "use":
    case "createDatabase":
    case "dropDatabase":
      await runDatabaseStatement(body, line, request);
      results.done({});
      return "next";
    case "waitfor":
      await waitFor(body.delay, line, request);
      return "next";
    case "insertBulk":
      await announceBulkLoad(body, line, request);
      results.done({});
      return "next";
    case "declareCursor":
    case "openCursor":
    case "fetch":
    case "closeCursor":
    case "deallocateCursor":
      await runCursorStatement(body, line, request);
      return "next";
    case "execute":
      await execute(body.call, line, request);
      return "next";
    case "executeText": {
      const text = (await evaluate(body.text, request, { name: "nvarchar", length: "max" })) ?? "";
      const depth = depthInside(request);
      const statements = session.usage.cache.parse(text, session.options.quotedIdentifier);
      // A database that USE enters there is left at the end.
      const run = () => runStatements(statements, { ...request, frame: newCallFrame(depth) });
      await inOwnDatabase(undefined, request, () => session.withOwnOptions(run));
      return "next";
    }
  }
}

function isExecute(source: Insert["source"]): source is ExecuteStatement {
  return source.kind === "execute" || source.kind === "executeText";
}

async function beginImplicitly({ session, results }: RequestContext): Promise<void> {
  if (session.options.implicitTransactions && session.transaction.count === 0) await session.transaction.begin(results);
}

const isolationLevels = ["read uncommitted", "read committed", "repeatable read", "snapshot", "serializable"] as const;

function isolationOf(level: string) {
  const found = isolationLevels.find((each) => each === level);
  if (found === undefined) throw new SqlError(102, `Incorrect syntax near '${level}'.`, { severity: 15 });
  return found;
}

async function runWhile(condition: Predicate, body: Statement, request: RequestContext): Promise<Outcome> {
  while (await evaluatePredicate(condition, request)) {
    request.signal.throwIfAborted();
    const outcome = await runGuarded(body, request);
    if (outcome === "break") return "next";
    if (outcome !== "next" && outcome !== "continue") return outcome;
  }
  return "next";
}

async function runTry(
  body: readonly Statement[],
  handler: readonly Statement[],
  request: RequestContext,
): Promise<Outcome> {
  const { session } = request;
  session.tryDepth += 1;
  let failure: SqlError;
  try {
    return await runStatements(body, request);
  } catch (error) {
    if (request.signal.aborted) throw error;
    failure = sqlErrorOf(error, 0);
    if (failure.severity >= 20) throw failure;
    session.usage.refusal(failure);
  } finally {
    session.tryDepth -= 1;
  }
  const { transaction } = session;
  if (transaction.count > 0 && (session.options.xactAbort || endsTransaction(failure))) transaction.isDoomed = true;
  session.lastError = failure.number;
  session.caught.push(failure);
  try {
    return await runStatements(handler, request);
  } finally {
    session.caught.pop();
  }
}

async function transactionName(name: string | undefined, request: RequestContext): Promise<string | undefined> {
  if (name?.startsWith("@") !== true) return name;
  return (await evaluate({ kind: "variable", name }, request, { name: "nvarchar", length: 32 })) ?? undefined;
}

/** Assigns a value, converted to the type of the variable. */
async function assign(name: string, expression: Expression, request: RequestContext): Promise<void> {
  const variable = request.frame.variables.get(name.toLowerCase());
  if (variable === undefined) throw new SqlError(137, `Must declare the scalar variable "${name}".`, { severity: 15 });
  variable.value = await evaluate(expression, request, variable.type);
}

async function waitFor(expression: Expression, line: number, request: RequestContext): Promise<void> {
  const text = (await evaluate(expression, request, { name: "varchar", length: 30 })) ?? "";
  const match = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?$/.exec(text.trim());
  if (match === null)
    throw new SqlError(148, `Incorrect time '${text}' in WAITFOR. Use the format hh:mm:ss.`, { severity: 15, line });
  const [, hours, minutes, seconds = "0", fraction = "0"] = match;
  const ms = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000 + Number(fraction.padEnd(3, "0"));
  await delay(ms, undefined, { signal: request.signal });
}
