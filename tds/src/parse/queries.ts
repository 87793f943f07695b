import { lookUp } from "@holdfast/common/look-up.ts";
import type {
  Call,
  CommonTable,
  Expression,
  Predicate,
  Query,
  QueryBody,
  Select,
  SelectItem,
  TableSource,
  Top,
} from "./ast.ts";
import { parseCall, parseExpression, parseOrderBy, parsePredicate, startsQuery } from "./expressions.ts";
import { parseRowFormat } from "./row-format.ts";
import type { TokenStream } from "./token-stream.ts";
import { refuse, type RefusedFeature } from "./features.ts";

export function parseQuery(stream: TokenStream, withTables?: readonly CommonTable[]): Query {
  return stream.nested(() => {
    const common = withTables ?? parseWith(stream);
    const body = parseBody(stream);
    const orderBy = stream.is("ORDER", "BY") ? parseOrderBy(stream) : [];
    let offset: Expression | undefined;
    let fetch: Expression | undefined;
    if (stream.accept("OFFSET")) {
      offset = parseExpression(stream);
      if (!stream.accept("ROWS")) stream.expect("ROW");
      if (stream.accept("FETCH")) {
        if (!stream.accept("NEXT")) stream.expect("FIRST");
        fetch = parseExpression(stream);
        if (!stream.accept("ROWS")) stream.expect("ROW");
        stream.expect("ONLY");
      }
    }
    const format = parseRowFormat(stream, body);
    const query: Query = { kind: "query", with: common, body, orderBy, offset, fetch, ...(format && { format }) };
    if (!stream.accept("FOR", "BROWSE")) skipOption(stream);
    return query;
  });
}

/** Skips query hints, which change plans but not results. */
export function skipOption(stream: TokenStream): void {
  if (stream.accept("OPTION")) stream.skipParentheses();
}

export function parseWith(stream: TokenStream): CommonTable[] {
  if (!stream.accept("WITH")) return [];
  return stream.list(() => {
    const name = stream.identifier();
    const columns = stream.is("(") ? stream.identifierList() : [];
    stream.expect("AS");
    return { name, columns, query: stream.parenthesized(() => parseQuery(stream)) };
  });
}

function parseBody(stream: TokenStream): QueryBody {
  let left = parseIntersection(stream);
  for (;;) {
    if (stream.accept("UNION", "ALL"))
      left = { kind: "setOperation", operator: "UNION ALL", left, right: parseIntersection(stream) };
    else if (stream.accept("UNION"))
      left = { kind: "setOperation", operator: "UNION", left, right: parseIntersection(stream) };
    else if (stream.accept("EXCEPT"))
      left = { kind: "setOperation", operator: "EXCEPT", left, right: parseIntersection(stream) };
    else return left;
  }
}

function parseIntersection(stream: TokenStream): QueryBody {
  let left = parseTerm(stream);
  while (stream.accept("INTERSECT"))
    left = { kind: "setOperation", operator: "INTERSECT", left, right: parseTerm(stream) };
  return left;
}

function parseTerm(stream: TokenStream): QueryBody {
  if (stream.is("(")) return { kind: "nested", query: stream.parenthesized(() => parseQuery(stream)) };
  return parseSelect(stream);
}

function parseSelect(stream: TokenStream): Select {
  stream.expect("SELECT");
  const isDistinct = stream.accept("DISTINCT");
  if (!isDistinct) stream.accept("ALL");
  const top = parseTop(stream);
  const items = stream.list(() => parseSelectItem(stream));
  const into = stream.accept("INTO") ? stream.path() : undefined;
  const from = stream.accept("FROM") ? parseFrom(stream) : [];
  const where = parseWhere(stream);
  const groupBy = stream.accept("GROUP", "BY") ? stream.list(() => parseExpression(stream)) : [];
  const having = stream.accept("HAVING") ? parsePredicate(stream) : undefined;
  return { kind: "select", isDistinct, top, items, into, from, where, groupBy, having };
}

export function parseWhere(stream: TokenStream): Predicate | undefined {
  return stream.accept("WHERE") ? parsePredicate(stream) : undefined;
}

export function parseTop(stream: TokenStream): Top | undefined {
  if (!stream.accept("TOP")) return undefined;
  const count = stream.is("(") ? stream.parenthesized(() => parseTopCount(stream)) : parseTopNumber(stream);
  const isPercent = stream.accept("PERCENT");
  return { count, isPercent, withTies: stream.accept("WITH", "TIES") };
}

function parseTopCount(stream: TokenStream): Expression {
  return startsQuery(stream) ? { kind: "subquery", query: parseQuery(stream) } : parseExpression(stream);
}

/**
 * Parses the count of TOP: without parentheses only a number or variable, so that `TOP 5 * FROM t` is not a product.
 */
function parseTopNumber(stream: TokenStream): Expression {
  const { kind } = stream.current;
  if (kind !== "number" && kind !== "variable") throw stream.unexpected();
  return parseExpression(stream, 4);
}

const assignments = ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="];

export function parseSelectItem(stream: TokenStream): SelectItem {
  const { kind, text } = stream.current;
  const following = stream.peek(1);
  if (kind === "variable" && following.kind === "symbol" && assignments.includes(following.text)) {
    stream.next();
    stream.next();
    const right = parseExpression(stream);
    const operator = following.text.slice(0, -1);
    const left: Expression = { kind: "variable", name: text };
    const expression: Expression = operator === "" ? right : { kind: "binary", operator, left, right };
    return { expression, alias: undefined, variable: text };
  }
  if (kind === "string" && following.kind === "symbol" && following.text === "=") {
    stream.next();
    stream.next();
    return { expression: parseExpression(stream), alias: text, variable: undefined };
  }
  if (stream.isIdentifier && following.kind === "symbol" && following.text === "=") {
    const alias = stream.identifier();
    stream.next();
    return { expression: parseExpression(stream), alias, variable: undefined };
  }
  const expression = parseExpression(stream);
  return { expression, alias: parseItemAlias(stream), variable: undefined };
}

function parseItemAlias(stream: TokenStream): string | undefined {
  const isMarked = stream.accept("AS");
  if (stream.current.kind === "string") return stream.next().text;
  if (isMarked) return stream.identifier();
  return stream.isIdentifier ? stream.identifier() : undefined;
}

export function parseFrom(stream: TokenStream): TableSource[] {
  return stream.list(() => stream.nested(() => parseJoins(stream)));
}

type JoinType = Extract<TableSource, { kind: "join" }>["type"];

function parseJoins(stream: TokenStream): TableSource {
  let left = parseTableSource(stream);
  for (;;) {
    if (stream.is("PIVOT") || stream.is("UNPIVOT")) throw refuse("PIVOT and UNPIVOT", stream.current.line);
    const type = parseJoinType(stream);
    if (type === undefined) return left;
    if (type === "CROSS" || type === "CROSS APPLY" || type === "OUTER APPLY") {
      left = { kind: "join", type, left, right: parseTableSource(stream), on: undefined };
      continue;
    }
    const right = stream.nested(() => parseJoins(stream));
    stream.expect("ON");
    left = { kind: "join", type, left, right, on: parsePredicate(stream) };
  }
}

function parseJoinType(stream: TokenStream): JoinType | undefined {
  if (stream.accept("CROSS", "JOIN")) return "CROSS";
  if (stream.accept("CROSS", "APPLY")) return "CROSS APPLY";
  if (stream.accept("OUTER", "APPLY")) return "OUTER APPLY";
  if (stream.accept("JOIN")) return "INNER";
  for (const type of ["INNER", "LEFT", "RIGHT", "FULL"] as const) {
    if (!stream.is(type) || stream.peek(1).text === "(") continue;
    stream.next();
    if (type !== "INNER") stream.accept("OUTER");
    for (const hint of ["LOOP", "HASH", "MERGE", "REMOTE"]) stream.accept(hint);
    stream.expect("JOIN");
    return type;
  }
  return undefined;
}

/** Rowset functions that are refused, each as its feature. */
const refusedRowsets: Readonly<Record<string, RefusedFeature>> = {
  OPENROWSET: "OPENROWSET",
  OPENDATASOURCE: "OPENDATASOURCE",
  OPENQUERY: "OPENQUERY",
  OPENXML: "OPENXML",
  CONTAINSTABLE: "full-text search",
  FREETEXTTABLE: "full-text search",
};

function parseTableSource(stream: TokenStream): TableSource {
  const { kind, keyword, line } = stream.current;
  const rowset = kind === "word" ? lookUp(refusedRowsets, keyword) : undefined;
  if (rowset !== undefined) throw refuse(rowset, line);
  if (stream.is("(")) return parseParenthesizedSource(stream);
  if (kind === "variable") {
    const name = stream.next().text;
    return { kind: "tableVariable", name, alias: parseAlias(stream) };
  }
  const path = stream.path();
  if (path.length === 4) throw refuse("linked servers", line);
  if (stream.is("(") && !isHint(stream)) {
    const call: Call = parseCall(stream, path, line);
    const { alias, columns } = parseAliasWithColumns(stream);
    return { kind: "function", call, alias, columns };
  }
  if (stream.is("FOR", "SYSTEM_TIME")) throw refuse("temporal queries", stream.current.line);
  skipHints(stream);
  const alias = parseAlias(stream);
  skipHints(stream);
  return { kind: "table", path, alias, line };
}

function parseParenthesizedSource(stream: TokenStream): TableSource {
  if (startsQuery(stream)) {
    const query = stream.parenthesized(() => parseQuery(stream));
    const { alias = "", columns } = parseAliasWithColumns(stream);
    if (alias === "") throw stream.unexpected();
    return { kind: "derived", query, alias, columns };
  }
  if (stream.peek(1).keyword === "VALUES") {
    const rows = stream.parenthesized(() => {
      stream.expect("VALUES");
      return stream.list(() => stream.parenthesized(() => stream.list(() => parseExpression(stream))));
    });
    const { alias = "", columns } = parseAliasWithColumns(stream);
    if (alias === "") throw stream.unexpected();
    return { kind: "values", rows, alias, columns };
  }
  return stream.parenthesized(() => parseJoins(stream));
}

function parseAliasWithColumns(stream: TokenStream): { alias: string | undefined; columns: string[] } {
  const alias = parseAlias(stream);
  return { alias, columns: alias !== undefined && stream.is("(") ? stream.identifierList() : [] };
}

export function parseAlias(stream: TokenStream): string | undefined {
  if (stream.accept("AS")) return stream.identifier();
  const { keyword, kind } = stream.current;
  // Words after a table that begin a clause although they are not reserved, so that they are not aliases.
  if (kind === "word" && ["OUTPUT", "OFFSET", "USING", "GO", "THROW"].includes(keyword)) return undefined;
  if (!stream.isIdentifier) return undefined;
  // A word before a parenthesis is no alias, unless the parenthesis has columns or hints: `t n (NOLOCK)`.
  const following = stream.peek(2);
  const isName = following.kind === "quoted" || following.kind === "word";
  return !stream.is(keyword, "(") || (isName && [",", ")"].includes(stream.peek(3).text))
    ? stream.identifier()
    : undefined;
}

const hints = [
  "NOLOCK",
  "READUNCOMMITTED",
  "READCOMMITTED",
  "READCOMMITTEDLOCK",
  "REPEATABLEREAD",
  "SERIALIZABLE",
  "SNAPSHOT",
  "HOLDLOCK",
  "UPDLOCK",
  "ROWLOCK",
  "PAGLOCK",
  "TABLOCK",
  "TABLOCKX",
  "XLOCK",
  "READPAST",
  "NOWAIT",
  "NOEXPAND",
  "FORCESEEK",
  "FORCESCAN",
  "INDEX",
  "KEEPIDENTITY",
  "KEEPDEFAULTS",
];

/** `t (NOLOCK)` is an old form of a hint. */
function isHint(stream: TokenStream): boolean {
  return hints.includes(stream.peek(1).keyword) && [")", ",", "=", "("].includes(stream.peek(2).text);
}

export function skipHints(stream: TokenStream): void {
  if (!(stream.is("WITH", "(") || (stream.is("(") && isHint(stream)))) return;
  stream.accept("WITH");
  stream.skipParentheses();
}
