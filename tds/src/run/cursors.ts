import { quoteName } from "../bind/object-name.ts";
import { emitQuery } from "../emit/queries.ts";
import type { CursorName, CursorStatement, FetchPosition } from "../parse/ast.ts";
import { commands } from "../protocol/token.ts";
import type { Value } from "../types/tsql-type.ts";
import { converted, evaluate } from "./evaluation.ts";
import type { Cursor } from "./call-frame.ts";
import type { RequestContext } from "./request-context.ts";
import { SqlError } from "./sql-error.ts";

/** Max cursors of a frame or session. */
const cursorsMax = 1_000;

export async function runCursorStatement(
  statement: CursorStatement,
  line: number,
  request: RequestContext,
): Promise<void> {
  const { session, frame } = request;
  switch (statement.kind) {
    case "declareCursor": {
      const { name, isGlobal, query } = statement;
      // As in SQL Server by default, a cursor without LOCAL belongs to the session.
      const cursors = isGlobal === false ? frame.cursors : session.cursors;
      const folded = name.toLowerCase();
      if (cursors.has(folded)) throw new SqlError(16_915, `A cursor with the name '${name}' already exists.`, { line });
      if (cursors.size >= cursorsMax)
        throw new SqlError(701, `There are more than ${cursorsMax} cursors; deallocate some first.`, { severity: 17 });
      cursors.set(folded, { query, name: quoteName(`:cursor${session.nextTemporary()}`), columns: undefined });
      return;
    }
    case "openCursor":
      await open(found(statement.cursor, line, request), line, request);
      return;
    case "fetch":
      await fetch(found(statement.cursor, line, request), statement, line, request);
      return;
    case "closeCursor": {
      const cursor = found(statement.cursor, line, request);
      if (cursor.columns === undefined) throw notOpen(line);
      await closeCursor(cursor, request);
      return;
    }
    case "deallocateCursor": {
      await closeCursor(found(statement.cursor, line, request), request);
      const folded = statement.cursor.name.toLowerCase();
      if (!frame.cursors.delete(folded)) session.cursors.delete(folded);
    }
  }
}

/** Closes the cursors of a procedure at its end. */
export async function closeCursors(request: RequestContext): Promise<void> {
  const { session, frame, signal } = request;
  if (signal.aborted || session.transaction.isDoomed || session.backend.hasFailed) return;
  for (const cursor of frame.cursors.values()) await closeCursor(cursor, request);
}

function found({ name, isGlobal }: CursorName, line: number, { session, frame }: RequestContext): Cursor {
  const folded = name.toLowerCase();
  const cursor = (isGlobal ? undefined : frame.cursors.get(folded)) ?? session.cursors.get(folded);
  if (cursor === undefined) throw new SqlError(16_916, `A cursor with the name '${name}' does not exist.`, { line });
  return cursor;
}

function notOpen(line: number): SqlError {
  return new SqlError(16_917, "Cursor is not open.", { line });
}

async function open(cursor: Cursor, line: number, { session, frame }: RequestContext): Promise<void> {
  if (cursor.columns !== undefined) throw new SqlError(16_905, "The cursor is already open.", { line });
  await session.loadTables(cursor.query, frame);
  const context = session.context(frame);
  const { sql, columns } = emitQuery(cursor.query, context);
  await session.transaction.withStatementSavepoint(() =>
    session.backend.query(`DECLARE ${cursor.name} SCROLL CURSOR WITH HOLD FOR ${sql}`, context.values),
  );
  cursor.columns = columns;
}

async function closeCursor(cursor: Cursor, { session }: RequestContext): Promise<void> {
  if (cursor.columns === undefined) return;
  cursor.columns = undefined;
  const isOpen = "SELECT FROM pg_cursors WHERE quote_ident(name) = $1";
  await session.transaction.withStatementSavepoint(async () => {
    // The rollback of a transaction closes the cursors that it opened.
    const rows = await session.backend.query(isOpen, [cursor.name]);
    if (rows.length > 0) await session.backend.query(`CLOSE ${cursor.name}`);
  });
}

async function fetch(
  cursor: Cursor,
  { position, into }: Extract<CursorStatement, { kind: "fetch" }>,
  line: number,
  request: RequestContext,
): Promise<void> {
  const { session, frame, results } = request;
  const { columns } = cursor;
  if (columns === undefined) throw notOpen(line);
  if (into.length > 0 && into.length !== columns.length) {
    const message = "The number of variables in the INTO list must match the number of columns of the cursor.";
    throw new SqlError(16_924, message, { line });
  }
  const direction = await directionText(position, request);
  const rows = await session.transaction.withStatementSavepoint(() =>
    session.backend.query(`FETCH ${direction} FROM ${cursor.name}`),
  );
  const [row] = rows;
  session.fetchStatus = row === undefined ? -1 : 0;
  session.rowCount = rows.length;
  if (into.length === 0) {
    results.columns(columns);
    for (const each of rows) results.row(columns, each);
    results.done({ command: commands.select, rowCount: rows.length });
    return;
  }
  for (const [index, name] of into.entries()) {
    const variable = frame.variables.get(name.toLowerCase());
    const column = columns[index];
    if (variable === undefined || column === undefined)
      throw new SqlError(137, `Must declare the scalar variable "${name}".`, { severity: 15, line });
    if (row === undefined) continue;
    const value: Value = row[index] ?? null;
    const argument = { name, type: column.type, value, isOutput: false };
    variable.value = await converted(argument, variable.type, request);
  }
}

async function directionText({ direction, offset }: FetchPosition, request: RequestContext): Promise<string> {
  if (offset === undefined) return direction;
  const value = (await evaluate(offset, request, { name: "int" })) ?? "0";
  return `${direction} ${Number(value)}`;
}
