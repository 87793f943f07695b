import type { Insert } from "../parse/ast.ts";
import { type Column, commands, type ServerMessage } from "../protocol/token.ts";
import type { TsqlType, Value } from "../types/tsql-type.ts";
import type { RequestContext } from "./request-context.ts";
import { RowInsert } from "./row-insert.ts";
import { SqlError } from "./sql-error.ts";
import type { StatementResults } from "./results.ts";

/** Max characters of the rows of an INSERT ... EXEC: they are inserted after the end of the call. */
const charactersMax = 64 << 20;

/** Keeps the rows of the statements of a call; messages and errors go to the client. */
class CapturedResults implements StatementResults {
  readonly rows: (readonly Value[])[] = [];
  types: readonly TsqlType[] | undefined;
  /** True if a result set cannot be inserted: nothing of the call is then. */
  isRefused = false;
  #characters = 0;
  readonly #outer: StatementResults;
  readonly #columnCount: number;

  constructor(outer: StatementResults, columnCount: number) {
    this.#outer = outer;
    this.#columnCount = columnCount;
  }

  message(message: ServerMessage): void {
    this.#outer.message(message);
  }

  error(error: SqlError): void {
    this.#outer.error(error);
  }

  columns(columns: readonly Column[]): void {
    const types = columns.map(({ type }) => type);
    if (types.length !== this.#columnCount)
      throw this.#refuse(
        new SqlError(213, "The number of columns of the results does not match the table definition."),
      );
    // Further result sets have the types of the first one; others are refused, since values are text.
    if (this.types !== undefined && types.some(({ name }, index) => name !== this.types?.[index]?.name))
      throw this.#refuse(new SqlError(213, "The result sets of the call have columns of different types."));
    this.types ??= types;
  }

  row(_: readonly Column[], row: readonly Value[]): boolean {
    for (const value of row) this.#characters += value?.length ?? 0;
    if (this.#characters > charactersMax)
      throw this.#refuse(
        new SqlError(701, `The rows of INSERT ... EXEC have more than ${charactersMax} characters.`, { severity: 17 }),
      );
    this.rows.push(row);
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  done(): void {}

  #refuse(error: SqlError): SqlError {
    this.isRefused = true;
    return error;
  }

  databaseChange(current: string, previous: string, line: number): void {
    this.#outer.databaseChange(current, previous, line);
  }

  transactionChange(type: Parameters<StatementResults["transactionChange"]>[0], descriptor: bigint): void {
    this.#outer.transactionChange(type, descriptor);
  }
}

/** Runs a call with `run` and inserts the rows of its result sets. */
export async function insertResults(
  insert: Insert,
  line: number,
  request: RequestContext,
  run: (inner: RequestContext) => Promise<void>,
): Promise<void> {
  const { session, results } = request;
  if (results instanceof CapturedResults)
    throw new SqlError(8164, "An INSERT EXEC statement cannot be nested.", { line });
  const { table, columns } = await session.insertTarget(insert.target, insert.columns, request.frame);
  const captured = new CapturedResults(results, columns.length);
  await run({ ...request, results: captured });
  if (captured.isRefused) return;
  const { types = columns.map(({ type }) => type) } = captured;
  const rows = new RowInsert(session.backend, { table, columns, types });
  await session.transaction.asOneStatement(async () => {
    for (const row of captured.rows) await rows.add(row.map((value, index) => bitText(types[index], value)));
    await rows.end();
  });
  session.rowCount = rows.rowCount;
  results.done({ command: commands.insert, rowCount: rows.rowCount });
}

/** PostgreSQL's booleans are bits. */
function bitText(type: TsqlType | undefined, value: Value): Value {
  if (type?.name !== "bit") return value;
  return value === "t" ? "1" : value === "f" ? "0" : value;
}
