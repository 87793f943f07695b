import type {
  Assignment,
  CommonTable,
  Delete,
  Expression,
  Insert,
  InsertBulk,
  Merge,
  MergeClause,
  Output,
  Target,
  Update,
} from "./ast.ts";
import { parseDataType } from "./data-type.ts";
import { parseExecute } from "./execute-statements.ts";
import { parseExpression, parsePredicate, startsQuery } from "./expressions.ts";
import {
  parseAlias,
  parseFrom,
  parseQuery,
  parseSelectItem,
  parseTop,
  parseWhere,
  skipHints,
  skipOption,
} from "./queries.ts";
import type { TokenStream } from "./token-stream.ts";
import { refuse } from "./features.ts";

function parseTarget(stream: TokenStream): Target {
  if (stream.current.kind === "variable") return { kind: "tableVariable", name: stream.next().text };
  const { line } = stream.current;
  const path = stream.path();
  if (path.length === 4) throw refuse("linked servers", line);
  skipHints(stream);
  return { kind: "table", path, line };
}

function parseOutput(stream: TokenStream): Output | undefined {
  if (!stream.accept("OUTPUT")) return undefined;
  const items = stream.list(() => parseSelectItem(stream));
  if (!stream.accept("INTO")) return { items, into: undefined };
  const target = parseTarget(stream);
  return { items, into: { target, columns: stream.is("(") ? stream.identifierList() : [] } };
}

function parseRows(stream: TokenStream): Expression[][] {
  stream.expect("VALUES");
  return stream.list(() => stream.parenthesized(() => stream.list(() => parseExpression(stream))));
}

export function parseInsert(stream: TokenStream, common: readonly CommonTable[]): Insert | InsertBulk {
  stream.expect("INSERT");
  if (common.length === 0 && stream.is("BULK") && stream.peek(1).kind !== "symbol") return parseInsertBulk(stream);
  stream.accept("INTO");
  const target = parseTarget(stream);
  const columns = stream.is("(") && !startsQuery(stream) ? stream.identifierList() : [];
  const output = parseOutput(stream);
  const begin = { kind: "insert", with: common, target, columns, output } as const;
  if (stream.accept("DEFAULT", "VALUES")) return { ...begin, source: { kind: "default" } };
  if (stream.is("VALUES")) return { ...begin, source: { kind: "values", rows: parseRows(stream) } };
  if (stream.is("EXEC") || stream.is("EXECUTE")) {
    if (output !== undefined) throw refuse("OUTPUT of INSERT ... EXEC", stream.current.line);
    return { ...begin, source: parseExecute(stream) };
  }
  return { ...begin, source: parseQuery(stream) };
}

/** `INSERT BULK t (a int, b nvarchar(50) COLLATE c) WITH (KEEP_NULLS, TABLOCK)`, which drivers send. */
function parseInsertBulk(stream: TokenStream): InsertBulk {
  stream.expect("BULK");
  const path = stream.path();
  const columns = stream.parenthesized(() =>
    stream.list(() => {
      const name = stream.anyIdentifier();
      parseDataType(stream);
      if (stream.accept("COLLATE")) stream.anyIdentifier();
      if (!stream.accept("NOT", "NULL")) stream.accept("NULL");
      return name;
    }),
  );
  const options = stream.accept("WITH") ? stream.parenthesized(() => stream.list(() => parseBulkOption(stream))) : [];
  return { kind: "insertBulk", path, columns, keepsNulls: options.includes("KEEP_NULLS") };
}

function parseBulkOption(stream: TokenStream): string {
  const { keyword } = stream.current;
  stream.anyIdentifier();
  if (stream.accept("=")) stream.integer();
  else if (stream.is("(")) stream.skipParentheses();
  return keyword;
}

function parseAssignments(stream: TokenStream): Assignment[] {
  return stream.list(() => {
    if (stream.current.kind === "variable") return parseVariableAssignment(stream);
    const column = stream.path().at(-1) ?? "";
    return { column, expression: parseAssigned(stream, { kind: "column", path: [column], line: stream.current.line }) };
  });
}

/** `@v = expression`, or `@v = column = expression`. */
function parseVariableAssignment(stream: TokenStream): Assignment {
  const { text: variable } = stream.next();
  const expression = parseAssigned(stream, { kind: "variable", name: variable });
  const { kind, text } = stream.current;
  if (expression.kind !== "column" || kind !== "symbol" || !isAssignment(text)) return { variable, expression };
  const column = expression.path.at(-1) ?? "";
  return { variable, column, expression: parseAssigned(stream, { ...expression, path: [column] }) };
}

const isAssignment = (text: string) => text.endsWith("=") && text.length <= 2 && !["<=", ">=", "!="].includes(text);

/** The value of `= expression`, or of an operator such as `+=` with the left side. */
function parseAssigned(stream: TokenStream, left: Expression): Expression {
  const { text, kind } = stream.next();
  if (kind !== "symbol" || !isAssignment(text)) throw stream.unexpected();
  const right = parseExpression(stream);
  const operator = text.slice(0, -1);
  return operator === "" ? right : { kind: "binary", operator, left, right };
}

export function parseUpdate(stream: TokenStream, common: readonly CommonTable[]): Update {
  stream.expect("UPDATE");
  const top = parseTop(stream);
  const target = parseTarget(stream);
  stream.expect("SET");
  const assignments = parseAssignments(stream);
  const output = parseOutput(stream);
  const from = stream.accept("FROM") ? parseFrom(stream) : [];
  const where = parseWhere(stream);
  skipOption(stream);
  return { kind: "update", with: common, top, target, assignments, from, where, output };
}

export function parseDelete(stream: TokenStream, common: readonly CommonTable[]): Delete {
  stream.expect("DELETE");
  const top = parseTop(stream);
  stream.accept("FROM");
  const target = parseTarget(stream);
  const output = parseOutput(stream);
  const from = stream.accept("FROM") ? parseFrom(stream) : [];
  const where = parseWhere(stream);
  skipOption(stream);
  return { kind: "delete", with: common, top, target, from, where, output };
}

export function parseMerge(stream: TokenStream, common: readonly CommonTable[]): Merge {
  stream.expect("MERGE");
  stream.accept("INTO");
  const target = parseTarget(stream);
  const alias = parseAlias(stream);
  stream.expect("USING");
  const [source, ...others] = parseFrom(stream);
  if (source === undefined || others.length > 0) throw stream.unexpected();
  stream.expect("ON");
  const on = parsePredicate(stream);
  const clauses: MergeClause[] = [];
  while (stream.accept("WHEN")) clauses.push(parseMergeClause(stream));
  const output = parseOutput(stream);
  skipOption(stream);
  return { kind: "merge", with: common, target, alias, source, on, clauses, output };
}

function parseMergeClause(stream: TokenStream): MergeClause {
  const isNegated = stream.accept("NOT");
  stream.expect("MATCHED");
  const bySource = isNegated && stream.accept("BY", "SOURCE");
  if (isNegated && !bySource && stream.accept("BY")) stream.expect("TARGET");
  const when = isNegated ? (bySource ? "notMatchedBySource" : "notMatchedByTarget") : "matched";
  const condition = stream.accept("AND") ? parsePredicate(stream) : undefined;
  stream.expect("THEN");
  if (stream.accept("DELETE")) return { when, condition, action: { kind: "delete" } };
  if (stream.accept("UPDATE")) {
    stream.expect("SET");
    const assignments = parseAssignments(stream);
    const isVariable = assignments.some(({ variable }) => variable !== undefined);
    if (isVariable) throw refuse("SET @variable in MERGE", stream.current.line);
    return { when, condition, action: { kind: "update", assignments } };
  }
  stream.expect("INSERT");
  const columns = stream.is("(") ? stream.identifierList() : [];
  const [values = []] = parseRows(stream);
  return { when, condition, action: { kind: "insert", columns, values } };
}
