import { qualified } from "../bind/object-name.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import type { InsertBulk } from "../parse/ast.ts";
import { BulkReader } from "../protocol/bulk-load.ts";
import { ProtocolError } from "../protocol/protocol-error.ts";
import type { WireFormat } from "../protocol/tds-version.ts";
import { commands } from "../protocol/token.ts";
import type { RequestBody } from "../session/message-source.ts";
import type { Backend } from "./backend.ts";
import type { BulkTarget } from "./bulk-target.ts";
import type { RequestContext } from "./request-context.ts";
import { RowInsert } from "./row-insert.ts";
import { SqlError } from "./sql-error.ts";

/** Runs INSERT BULK: the next message of the client has the rows. */
export async function announceBulkLoad(insert: InsertBulk, line: number, request: RequestContext): Promise<void> {
  const { session, frame } = request;
  const target = { kind: "table", path: insert.path, line } as const;
  const { table, columns } = await session.insertTarget(target, insert.columns, frame, true);
  session.bulkTarget = { table, columns, keepsNulls: insert.keepsNulls };
}

/**
 * Inserts the rows of a bulk load, all or none of them; returns their number. It reads the message to its end also
 * after an error, since clients read the response only then.
 */
export async function runBulkLoad(body: RequestBody, format: WireFormat, request: RequestContext): Promise<void> {
  const { session, results, signal } = request;
  const target = session.bulkTarget;
  session.bulkTarget = undefined;
  const pieces = body[Symbol.asyncIterator]();
  let hasEnded = false;
  const next = async () => {
    const { done, value } = await pieces.next();
    hasEnded = done === true;
    return hasEnded ? undefined : (value as Buffer);
  };
  try {
    if (target === undefined) throw new SqlError(4002, "The rows of a bulk load must follow an INSERT BULK statement.");
    if (session.options.implicitTransactions && session.transaction.count === 0)
      await session.transaction.begin(results);
    const rowCount = await session.transaction.asOneStatement(async () => {
      const count = await insertRows(target, next, format, request);
      // The client canceled the load while it sent it: nothing of it may be committed.
      if (body.isIgnored) throw new CanceledLoad();
      return count;
    });
    session.rowCount = rowCount;
    results.done({ command: commands.insert, rowCount });
  } finally {
    while (!hasEnded && !signal.aborted) await next();
  }
}

/** The client ended the message with the flag that cancels it. */
export class CanceledLoad extends Error {
  override readonly name = "CanceledLoad";
}

async function insertRows(
  { table, columns, keepsNulls }: BulkTarget,
  next: () => Promise<Buffer | undefined>,
  format: WireFormat,
  { session, signal }: RequestContext,
): Promise<number> {
  const { backend } = session;
  const reader = new BulkReader(format);
  const defaults = keepsNulls ? undefined : await defaultsOf(table, backend);
  let insert: RowInsert | undefined;
  for (;;) {
    const piece = await next();
    signal.throwIfAborted();
    const rows = piece === undefined ? reader.end() : reader.read(piece);
    if (insert === undefined && reader.columns !== undefined) {
      if (reader.columns.length !== columns.length)
        throw new ProtocolError(`a bulk load has ${reader.columns.length} of ${columns.length} columns`);
      const types = reader.columns.map(({ sent }) => sent.type);
      insert = new RowInsert(backend, { table, columns, types, ...(defaults && { defaults }) });
    }
    for (const row of rows) await insert?.add(row);
    if (piece === undefined) break;
  }
  await insert?.end();
  return insert?.rowCount ?? 0;
}

const defaultsQuery = `
SELECT a.attname, pg_catalog.pg_get_expr(d.adbin, d.adrelid)
  FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
 WHERE d.adrelid = $1::regclass AND a.attgenerated = ''`;

/** Default expressions of the columns, as PostgreSQL prints them. */
async function defaultsOf(table: TableDefinition, backend: Backend): Promise<Map<string, string>> {
  const rows = await backend.query(defaultsQuery, [qualified(table)]);
  return new Map(rows.map(([name, expression]) => [name ?? "", `(${expression ?? "NULL"})`]));
}
