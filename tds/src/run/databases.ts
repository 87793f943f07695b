import { type DatabaseName, isPlain, isSystemDatabase, schemaPrefix } from "../bind/databases.ts";
import { createDatabaseSql, dependentQuery, dropDatabaseSql, schemasQuery } from "../catalog/database-sql.ts";
import type { DatabaseStatement, Path } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { type Backend, DatabaseError } from "./backend.ts";
import { runAll } from "./definitions.ts";
import type { RequestContext } from "./request-context.ts";
import type { Session } from "./session.ts";
import { SqlError } from "./sql-error.ts";

/** The database of the layout multi-db with this name, in any case; undefined if there is none. */
export async function findDatabase(name: string, backend: Pick<Backend, "query">): Promise<DatabaseName | undefined> {
  const folded = name.toLowerCase();
  if (isSystemDatabase(folded)) return { folded, spelling: folded };
  if (!isPlain(folded)) return undefined;
  const sql = "SELECT name FROM holdfast_tsql.databases WHERE prefix = $1";
  const [row] = await backend.query(sql, [schemaPrefix(folded)]);
  return row?.[0] == null ? undefined : { folded, spelling: row[0] };
}

/** The database of a procedure that is called by a name with a database; undefined for the current one. */
export async function homeOf(path: Path, session: Session): Promise<DatabaseName | undefined> {
  const name = path.at(-3) ?? "";
  if (session.layoutMode === "single-db" || name === "") return undefined;
  return findDatabase(name, session.backend);
}

/**
 * Runs the statements of a procedure or of a text in their database, the current one by default. USE in a text lasts
 * until its end.
 */
export async function inOwnDatabase<T>(
  database: DatabaseName | undefined,
  { session, results }: RequestContext,
  run: () => Promise<T>,
): Promise<T> {
  const outer = session.databaseName;
  let entered = outer;
  try {
    return await session.inDatabase(database, async () => {
      try {
        return await run();
      } finally {
        entered = session.databaseName;
      }
    });
  } finally {
    if (database === undefined && entered !== outer) results.databaseChange(outer, entered, 0);
  }
}

/** Runs USE, CREATE DATABASE and DROP DATABASE. */
export async function runDatabaseStatement(
  statement: DatabaseStatement,
  line: number,
  request: RequestContext,
): Promise<void> {
  switch (statement.kind) {
    case "use":
      await use(statement.database, line, request);
      return;
    case "createDatabase":
      requireSeveral(request.session, line);
      requireNoTransaction("CREATE DATABASE", line, request);
      await create(statement.database, line, request);
      return;
    case "dropDatabase":
      requireSeveral(request.session, line);
      requireNoTransaction("DROP DATABASE", line, request);
      for (const name of statement.databases) await drop(name, statement.ifExists, line, request);
  }
}

function requireSeveral({ layoutMode }: Session, line: number): void {
  if (layoutMode === "single-db") throw refuse("CREATE DATABASE", line);
}

function requireNoTransaction(statement: string, line: number, { session }: RequestContext): void {
  if (session.transaction.count === 0) return;
  throw new SqlError(226, `${statement} statement not allowed within multi-statement transaction.`, { line });
}

async function use(name: string, line: number, { session, frame, results }: RequestContext): Promise<void> {
  if (frame.procedure !== undefined) {
    const message = "A USE database statement is not allowed in a procedure, function or trigger.";
    throw new SqlError(154, message, { severity: 15, line });
  }
  const previous = session.databaseName;
  if (session.layoutMode === "single-db") {
    const folded = name.toLowerCase();
    if (folded !== session.database && !isSystemDatabase(folded)) {
      const message = `Database '${name}' does not exist. The only database of this service is '${session.database}': its layout is single-db.`;
      throw new SqlError(911, message, { line, feature: "other databases" });
    }
  } else {
    const found = await session.transaction.withStatementSavepoint(() => findDatabase(name, session.backend));
    if (found === undefined) throw unknownDatabase(name, line);
    await session.changeDatabase(found);
  }
  results.databaseChange(session.databaseName, previous, line);
}

function unknownDatabase(name: string, line: number): SqlError {
  const message = `Database '${name}' does not exist. Make sure that the name is entered correctly.`;
  return new SqlError(911, message, { line });
}

async function create(name: string, line: number, request: RequestContext): Promise<void> {
  const { backend } = request.session;
  if (name === "" || !isPlain(name))
    throw new SqlError(102, "A name of a database contains a character that is not permitted.", { severity: 15, line });
  const exists = () =>
    new SqlError(1801, `Database '${name}' already exists. Choose a different database name.`, { line });
  if ((await findDatabase(name, backend)) !== undefined) throw exists();
  const [row] = await backend.query("SELECT holdfast_tsql.database_owner()");
  try {
    await runAll(createDatabaseSql(name, row?.[0] ?? ""), request);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    // Of two at the same time, the second one fails at the index of names.
    if (error.code === "42P06" || error.code === "23505") throw exists();
    if (error.code !== "42501") throw error;
    throw new SqlError(262, "CREATE DATABASE permission denied in database 'master'.", { severity: 14, line });
  }
}

async function drop(name: string, ifExists: boolean, line: number, request: RequestContext): Promise<void> {
  const { session } = request;
  const { backend } = session;
  const found = await findDatabase(name, backend);
  const missing = () => {
    const message = `Cannot drop the database '${name}', because it does not exist or you do not have permission.`;
    return new SqlError(3701, message, { severity: 11, line });
  };
  if (found === undefined) {
    if (ifExists) return;
    throw missing();
  }
  if (isSystemDatabase(found.folded) || found.folded === session.defaultDatabase)
    throw new SqlError(3708, `Cannot drop the database '${name}' because it is a system database.`, { line });
  if (found.folded === session.database)
    throw new SqlError(3702, `Cannot drop database "${name}" because it is currently in use.`, { line });
  const schemas = await backend.query(schemasQuery, [schemaPrefix(found.folded)]);
  const oids = `{${schemas.map(([oid]) => oid).join(",")}}`;
  const [dependent] = await backend.query(dependentQuery, [oids]);
  if (dependent !== undefined) {
    const message = `Cannot drop database '${name}' because it is being referenced by object '${dependent[0]}'.`;
    throw new SqlError(3729, message, { line });
  }
  try {
    await backend.query(dropDatabaseSql(schemas.map(([, schema]) => schema ?? "")));
  } catch (error) {
    if (error instanceof DatabaseError && ["42501", "3F000"].includes(error.code ?? "")) throw missing();
    throw error;
  } finally {
    session.catalog.clear();
  }
}
