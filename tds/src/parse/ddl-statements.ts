import { lookUp } from "@holdfast/common/look-up.ts";
import type { ColumnDefinition, CreateType, Ddl, Path, Predicate, TableConstraint } from "./ast.ts";
import { collatedType } from "./collation.ts";
import { parseDataType } from "./data-type.ts";
import { parseExpression, parsePredicate } from "./expressions.ts";
import { parseQuery } from "./queries.ts";
import { tokenize } from "./lexer.ts";
import { TokenStream } from "./token-stream.ts";
import { SqlError } from "../run/sql-error.ts";
import { refuse, type RefusedFeature } from "./features.ts";

/** Types of objects that CREATE, ALTER and DROP refuse with the number of a feature. */
const refusedObjects: Readonly<Record<string, RefusedFeature>> = {
  ASSEMBLY: "CLR",
  FULLTEXT: "full-text search",
  SYNONYM: "synonyms",
  LOGIN: "logins, users and roles",
  USER: "logins, users and roles",
  ROLE: "logins, users and roles",
  PARTITION: "partitions",
};

export function parseCreate(stream: TokenStream): Ddl {
  const { position } = stream;
  const { line } = stream.current;
  stream.expect("CREATE");
  if (stream.accept("TYPE")) return parseCreateType(stream, position);
  if (stream.accept("TABLE")) return parseCreateTable(stream);
  if (stream.accept("SCHEMA")) {
    const name = stream.identifier();
    if (stream.accept("AUTHORIZATION")) stream.identifier();
    return { kind: "createSchema", name };
  }
  if (stream.accept("VIEW")) return parseCreateView(stream);
  if (stream.accept("SEQUENCE")) return parseCreateSequence(stream);
  const isUnique = stream.accept("UNIQUE");
  if (!stream.accept("CLUSTERED")) stream.accept("NONCLUSTERED");
  if (stream.accept("INDEX")) return parseCreateIndex(stream, isUnique);
  throw refuseObject(stream, stream.accept("OR", "ALTER") ? "CREATE OR ALTER" : "CREATE", line);
}

/** `position`: that of the word CREATE. */
function parseCreateType(stream: TokenStream, position: number): CreateType {
  const { line } = stream.current;
  const path = stream.path();
  if (stream.accept("FROM")) {
    const type = parseDataType(stream);
    const isNullable = !stream.accept("NOT", "NULL");
    if (isNullable) stream.accept("NULL");
    return { kind: "createType", path, definition: { kind: "alias", type, isNullable } };
  }
  if (stream.accept("EXTERNAL")) throw refuse("CLR", line);
  stream.expect("AS", "TABLE");
  const elements = stream.parenthesized(() => parseTableElements(stream));
  if (stream.accept("WITH")) throw refuse("storage of table types", line);
  return { kind: "createType", path, definition: { kind: "table", ...elements, text: stream.textFrom(position) } };
}

/** Parses the text of CREATE TYPE of a table type, as it was stored. */
export function parseTableType(text: string): Extract<CreateType["definition"], { kind: "table" }> | undefined {
  const ddl = parseCreate(new TokenStream(tokenize(text), parseQuery));
  return ddl.kind === "createType" && ddl.definition.kind === "table" ? ddl.definition : undefined;
}

function refuseObject(stream: TokenStream, verb: string, line: number): Error {
  const { keyword } = stream.current;
  if (["PROC", "PROCEDURE", "FUNCTION", "TRIGGER"].includes(keyword) && verb !== "DROP") {
    const message = `'CREATE/ALTER ${keyword}' must be the first statement in a query batch.`;
    return new SqlError(111, message, { severity: 15, line });
  }
  return refuse(lookUp(refusedObjects, keyword) ?? "other statements", line, `${verb} ${keyword}`);
}

function parseCreateTable(stream: TokenStream): Ddl {
  const path = stream.path();
  const { columns, constraints } = stream.parenthesized(() => parseTableElements(stream));
  if (stream.accept("ON")) stream.identifierOrString();
  if (stream.accept("TEXTIMAGE_ON")) stream.identifierOrString();
  return { kind: "createTable", path, columns, constraints };
}

export function parseTableElements(stream: TokenStream): {
  columns: ColumnDefinition[];
  constraints: TableConstraint[];
} {
  const columns: ColumnDefinition[] = [];
  const constraints: TableConstraint[] = [];
  do {
    if (stream.is(")")) break;
    const constraint = parseTableConstraint(stream);
    if (constraint === undefined) columns.push(parseColumn(stream));
    else constraints.push(constraint);
  } while (stream.accept(","));
  return { columns, constraints };
}

function parseColumn(stream: TokenStream): ColumnDefinition {
  const name = stream.identifier();
  if (stream.accept("AS")) {
    const computed = parseExpression(stream);
    stream.accept("PERSISTED");
    const isNullable = stream.accept("NOT", "NULL") ? false : undefined;
    return {
      name,
      type: undefined,
      isNullable,
      identity: undefined,
      default: undefined,
      computed,
      constraints: [],
    };
  }
  let type = parseDataType(stream);
  let isNullable: boolean | undefined;
  let identity: ColumnDefinition["identity"];
  let defaultValue: ColumnDefinition["default"];
  const constraints: TableConstraint[] = [];
  for (;;) {
    if (stream.accept("NOT", "NULL")) isNullable = false;
    else if (stream.accept("NULL")) isNullable = true;
    else if (stream.accept("COLLATE")) type = collatedType(stream, type);
    else if (stream.accept("ROWGUIDCOL") || stream.accept("SPARSE")) continue;
    else if (stream.accept("IDENTITY")) {
      const [seed = "1", increment = "1"] = stream.is("(")
        ? stream.parenthesized(() => stream.list(() => stream.integer()))
        : [];
      identity = { seed, increment };
    } else {
      const constraintName = stream.accept("CONSTRAINT") ? stream.identifier() : undefined;
      if (stream.accept("DEFAULT")) defaultValue = { name: constraintName, expression: parseExpression(stream, 4) };
      else {
        const constraint = parseConstraintBody(stream, constraintName, name);
        if (constraint === undefined) break;
        constraints.push(constraint);
      }
    }
  }
  return { name, type, isNullable, identity, default: defaultValue, computed: undefined, constraints };
}

function parseTableConstraint(stream: TokenStream): TableConstraint | undefined {
  if (stream.accept("CONSTRAINT")) {
    const name = stream.identifier();
    const constraint = parseConstraintBody(stream, name, undefined);
    if (constraint === undefined) throw stream.unexpected();
    return constraint;
  }
  return parseConstraintBody(stream, undefined, undefined);
}

/** `column`: the column whose definition has the constraint; undefined for a constraint of the table. */
function parseConstraintBody(
  stream: TokenStream,
  name: string | undefined,
  column: string | undefined,
): TableConstraint | undefined {
  const columnOfConstraint = column === undefined ? [] : [column];
  for (const [words, kind] of [
    [["PRIMARY", "KEY"], "primaryKey"],
    [["UNIQUE"], "unique"],
  ] as const) {
    if (!stream.accept(...words)) continue;
    if (!stream.accept("CLUSTERED")) stream.accept("NONCLUSTERED");
    const columns = stream.is("(") ? parseKeyColumns(stream).map((key) => key.name) : columnOfConstraint;
    skipIndexOptions(stream);
    return { name, kind, columns };
  }
  if (stream.accept("CHECK")) {
    stream.accept("NOT", "FOR", "REPLICATION");
    return { name, kind: "check", predicate: stream.parenthesized(() => parsePredicate(stream)) };
  }
  if (stream.is("FOREIGN") || (column !== undefined && stream.is("REFERENCES"))) {
    const columns = stream.accept("FOREIGN", "KEY") && stream.is("(") ? stream.identifierList() : columnOfConstraint;
    stream.expect("REFERENCES");
    const references = stream.path();
    const referencedColumns = stream.is("(") ? stream.identifierList() : [];
    let onDelete: string | undefined;
    let onUpdate: string | undefined;
    for (;;) {
      if (stream.accept("ON", "DELETE")) onDelete = parseReferentialAction(stream);
      else if (stream.accept("ON", "UPDATE")) onUpdate = parseReferentialAction(stream);
      else break;
    }
    return { name, kind: "foreignKey", columns, references, referencedColumns, onDelete, onUpdate };
  }
  if (column === undefined && stream.accept("DEFAULT")) {
    const expression = parseExpression(stream, 4);
    stream.expect("FOR");
    return { name, kind: "default", column: stream.identifier(), expression };
  }
  return undefined;
}

function parseReferentialAction(stream: TokenStream): string {
  if (stream.accept("CASCADE")) return "CASCADE";
  if (stream.accept("NO", "ACTION")) return "NO ACTION";
  stream.expect("SET");
  if (stream.accept("NULL")) return "SET NULL";
  stream.expect("DEFAULT");
  return "SET DEFAULT";
}

function parseKeyColumns(stream: TokenStream): { name: string; isDescending: boolean }[] {
  return stream.parenthesized(() =>
    stream.list(() => {
      const name = stream.identifier();
      const isDescending = stream.accept("DESC");
      if (!isDescending) stream.accept("ASC");
      return { name, isDescending };
    }),
  );
}

/** Skips storage options, which PostgreSQL does not have. */
function skipIndexOptions(stream: TokenStream): void {
  if (stream.is("WITH", "(")) {
    stream.next();
    stream.skipParentheses();
  }
  if (stream.accept("ON")) stream.identifierOrString();
}

function parseCreateIndex(stream: TokenStream, isUnique: boolean): Ddl {
  const name = stream.identifier();
  stream.expect("ON");
  const table = stream.path();
  const columns = parseKeyColumns(stream);
  const include = stream.accept("INCLUDE") ? stream.identifierList() : [];
  let where: Predicate | undefined;
  if (stream.accept("WHERE")) where = parsePredicate(stream);
  skipIndexOptions(stream);
  return { kind: "createIndex", name, isUnique, table, columns, include, where };
}

function parseCreateView(stream: TokenStream): Ddl {
  const path = stream.path();
  const columns = stream.is("(") ? stream.identifierList() : [];
  if (stream.accept("WITH")) stream.list(() => stream.identifier());
  stream.expect("AS");
  return { kind: "createView", path, columns, query: parseQuery(stream) };
}

function parseCreateSequence(stream: TokenStream): Ddl {
  const path = stream.path();
  const type = stream.accept("AS") ? parseDataType(stream) : undefined;
  let start: string | undefined;
  let increment: string | undefined;
  for (;;) {
    if (stream.accept("START", "WITH")) start = stream.integer();
    else if (stream.accept("INCREMENT", "BY")) increment = stream.integer();
    else if (!stream.accept("CYCLE") && !stream.accept("NO", "CYCLE") && !stream.accept("NO", "CACHE")) break;
  }
  return { kind: "createSequence", path, type, start, increment };
}

export function parseAlter(stream: TokenStream): Ddl {
  const { line } = stream.current;
  stream.expect("ALTER");
  if (!stream.accept("TABLE")) throw refuseObject(stream, "ALTER", line);
  const path = stream.path();
  if (stream.accept("WITH") && !stream.accept("CHECK")) stream.expect("NOCHECK");
  if (stream.accept("ADD")) return { kind: "alterTable", path, action: { kind: "add", ...parseTableElements(stream) } };
  if (stream.accept("ALTER", "COLUMN"))
    return { kind: "alterTable", path, action: { kind: "alterColumn", column: parseColumn(stream) } };
  if (stream.accept("DROP")) {
    const kind = stream.accept("COLUMN") ? "dropColumn" : "dropConstraint";
    if (kind === "dropConstraint") stream.accept("CONSTRAINT");
    const ifExists = stream.accept("IF", "EXISTS");
    return { kind: "alterTable", path, action: { kind, ifExists, names: stream.list(() => stream.identifier()) } };
  }
  throw refuse("other statements", line, `ALTER TABLE ${stream.current.keyword}`);
}

const droppable = ["TABLE", "VIEW", "SCHEMA", "SEQUENCE", "PROCEDURE", "FUNCTION", "TRIGGER", "TYPE"] as const;

export function parseDrop(stream: TokenStream): Ddl {
  const { line } = stream.current;
  stream.expect("DROP");
  for (const object of droppable) {
    if (!stream.accept(object) && !(object === "PROCEDURE" && stream.accept("PROC"))) continue;
    const ifExists = stream.accept("IF", "EXISTS");
    return { kind: "drop", object, ifExists, paths: stream.list((): Path => stream.path()) };
  }
  if (stream.accept("INDEX")) {
    const ifExists = stream.accept("IF", "EXISTS");
    const path = stream.path();
    if (stream.accept("ON")) return { kind: "dropIndex", ifExists, name: path[0] ?? "", table: stream.path() };
    return { kind: "dropIndex", ifExists, name: path.at(-1) ?? "", table: path.slice(0, -1) };
  }
  throw refuseObject(stream, "DROP", line);
}

export function parseTruncate(stream: TokenStream): Ddl {
  stream.expect("TRUNCATE", "TABLE");
  return { kind: "truncate", path: stream.path() };
}
