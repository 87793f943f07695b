import { lookUp } from "@holdfast/common/look-up.ts";
import { qualified, quoteName } from "../bind/object-name.ts";
import { parsePath } from "../parse/execute-statements.ts";
import { runAll } from "./definitions.ts";
import type { RequestContext } from "./request-context.ts";
import { SqlError } from "./sql-error.ts";

const storeSpelling = `
INSERT INTO holdfast_tsql.spelling AS s (schema_name, object_name, column_name, spelling) VALUES ($1, $2, $3, $4)
ON CONFLICT (schema_name, object_name, column_name) DO UPDATE SET spelling = EXCLUDED.spelling`;
/** Spellings of the columns of a table under its new name. */
const copySpellings = `
INSERT INTO holdfast_tsql.spelling AS s (schema_name, object_name, column_name, spelling)
SELECT schema_name, $3, column_name, spelling FROM holdfast_tsql.spelling WHERE schema_name = $1 AND object_name = $2 AND column_name <> ''
ON CONFLICT (schema_name, object_name, column_name) DO UPDATE SET spelling = EXCLUDED.spelling`;
const relationQuery = `
SELECT c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND lower(c.relname) = $2 AND c.relkind IN ('r', 'p', 'v', 'S') ORDER BY c.relname = $2 DESC LIMIT 1`;
const constraintQuery = `
SELECT c.relname, k.conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = $1 AND lower(k.conname) = $2 LIMIT 1`;
/** Indexes have the name of their table before their own. */
const indexesQuery = `
SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
 WHERE i.indrelid = $1::regclass AND starts_with(x.relname, $2)`;

const kinds: Readonly<Record<string, string>> = { v: "VIEW", S: "SEQUENCE" };

/** sp_rename of a table, view, sequence, constraint, column or index; error 15225 for other objects. */
export async function rename(name: string, newName: string, kind: string, request: RequestContext): Promise<void> {
  const path = parsePath(name);
  const folded = newName.toLowerCase();
  if (folded === "") throw new SqlError(15_223, "The new name is empty.", { severity: 11 });
  const { session } = request;
  await session.transaction.withStatementSavepoint(async () => {
    if (kind === "COLUMN") await renameColumn(path, newName, request);
    else if (kind === "INDEX") await renameIndex(path, folded, request);
    else if (kind === "" && path.length === 4) await renameColumn(path, newName, request);
    else if (kind === "" || kind === "OBJECT") await renameObject(path, newName, request);
    else throw notFound(name);
  });
  session.catalog.clear();
}

function notFound(name: string): SqlError {
  const message = `No item by the name of '${name}' could be found in the current database, or its kind cannot be renamed.`;
  return new SqlError(15_225, message, { severity: 11 });
}

async function renameColumn(path: readonly string[], newName: string, request: RequestContext): Promise<void> {
  const { session, frame } = request;
  const column = (path.at(-1) ?? "").toLowerCase();
  const target = session.context(frame).objectName(path.slice(0, -1), 0);
  await session.catalog.load([target]);
  const table = session.catalog.find(target);
  const found = table?.columns.find(({ name }) => name.toLowerCase() === column);
  if (table === undefined || found === undefined) throw notFound(path.join("."));
  const folded = newName.toLowerCase();
  const change = `ALTER TABLE ${qualified(table)} RENAME COLUMN ${quoteName(found.name)} TO ${quoteName(folded)}`;
  if (folded !== found.name) await runAll([change], request);
  await session.backend.query(storeSpelling, [table.schema, table.name, folded, newName]);
}

async function renameIndex(path: readonly string[], folded: string, request: RequestContext): Promise<void> {
  const table = request.session.context(request.frame).objectName(path.slice(0, -1), 0);
  const index = qualified({ schema: table.schema, name: `${table.name}.${(path.at(-1) ?? "").toLowerCase()}` });
  await runAll([`ALTER INDEX ${index} RENAME TO ${quoteName(`${table.name}.${folded}`)}`], request);
}

async function renameObject(path: readonly string[], newName: string, request: RequestContext): Promise<void> {
  const { session, frame } = request;
  const { schema, name } = session.context(frame).objectName(path, 0);
  const folded = newName.toLowerCase();
  const [relation] = await session.backend.query(relationQuery, [schema, name]);
  if (relation === undefined) {
    const [constraint] = await session.backend.query(constraintQuery, [schema, name]);
    if (constraint === undefined) throw notFound(path.join("."));
    const [table, own] = constraint.map((each) => each ?? "");
    const on = qualified({ schema, name: table ?? "" });
    await runAll([`ALTER TABLE ${on} RENAME CONSTRAINT ${quoteName(own ?? "")} TO ${quoteName(folded)}`], request);
    return;
  }
  const own = relation[0] ?? "";
  const kind = lookUp(kinds, relation[1] ?? "") ?? "TABLE";
  const quoted = qualified({ schema, name: own });
  const indexes = await session.backend.query(indexesQuery, [quoted, `${own}.`]);
  const changes = indexes.map(([index]) => {
    const renamed = quoteName(`${folded}${(index ?? "").slice(own.length)}`);
    return `ALTER INDEX ${qualified({ schema, name: index ?? "" })} RENAME TO ${renamed}`;
  });
  if (folded !== own) await runAll([...changes, `ALTER ${kind} ${quoted} RENAME TO ${quoteName(folded)}`], request);
  await session.backend.query(copySpellings, [schema, own, folded]);
  await session.backend.query(storeSpelling, [schema, folded, "", newName]);
}
