import { lookUp } from "@holdfast/common/look-up.ts";
import type { TsqlType } from "../types/tsql-type.ts";
import type { Call, Expression, OrderItem, Predicate, Query, Window } from "./ast.ts";
import { parseCollation } from "./collation.ts";
import { parseDataType } from "./data-type.ts";
import type { Token } from "./lexer.ts";
import { nestingMax, type TokenStream } from "./token-stream.ts";

/** Binding strength of binary operators. */
const strengths: Readonly<Record<string, number>> = {
  "*": 3,
  "/": 3,
  "%": 3,
  "+": 2,
  "-": 2,
  "&": 1,
  "^": 1,
  "|": 1,
};

const comparisons: Readonly<Record<string, string>> = {
  "=": "=",
  "<>": "<>",
  "!=": "<>",
  "<": "<",
  ">": ">",
  "<=": "<=",
  ">=": ">=",
  "!<": ">=",
  "!>": "<=",
};

/** Functions that are written without parentheses. */
const bareFunctions = ["CURRENT_TIMESTAMP", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER"];
/** Reserved words that are also names of functions. */
const reservedFunctions = ["COALESCE", "NULLIF", "LEFT", "RIGHT", "CURRENT_TIMESTAMP", "USER"];

export function parseExpression(stream: TokenStream, strength = 1): Expression {
  return stream.nested(() => {
    let left = parseUnary(stream);
    for (;;) {
      const operator = stream.current.kind === "symbol" ? stream.current.text : "";
      const operatorStrength = lookUp(strengths, operator);
      if (operatorStrength === undefined || operatorStrength < strength) return left;
      stream.next();
      left = { kind: "binary", operator, left, right: parseExpression(stream, operatorStrength + 1) };
    }
  });
}

function parseUnary(stream: TokenStream): Expression {
  for (const operator of ["-", "+", "~"]) {
    if (stream.accept(operator)) return { kind: "unary", operator, operand: stream.nested(() => parseUnary(stream)) };
  }
  let operand = parsePrimary(stream);
  while (stream.is("COLLATE")) {
    stream.next();
    operand = { kind: "collate", operand, collation: parseCollation(stream) };
  }
  return operand;
}

function parsePrimary(stream: TokenStream): Expression {
  const token = stream.current;
  switch (token.kind) {
    case "number":
      stream.next();
      return numberLiteral(token.text);
    case "money":
      stream.next();
      return { kind: "literal", type: { name: "money" }, value: token.text || "0" };
    case "binary": {
      stream.next();
      const digits = token.text.length % 2 === 1 ? `0${token.text}` : token.text;
      const type: TsqlType = { name: "varbinary", length: Math.max(1, Math.min(8_000, digits.length / 2)) };
      return { kind: "literal", type, value: `\\x${digits.toLowerCase()}` };
    }
    case "string":
      stream.next();
      return stringLiteral(token);
    case "variable":
      stream.next();
      return { kind: "variable", name: token.text };
    case "symbol":
      return parseSymbol(stream);
    case "quoted":
      return parseName(stream);
    case "word":
      return parseWord(stream);
    case "end":
      throw stream.unexpected();
  }
}

function stringLiteral({ text, isNational }: Token): Expression {
  const max = isNational ? 4_000 : 8_000;
  const length = text.length > max ? "max" : Math.max(1, text.length);
  return { kind: "literal", type: { name: isNational ? "nvarchar" : "varchar", length }, value: text };
}

function numberLiteral(text: string): Expression {
  if (/[eE]/.test(text))
    return { kind: "literal", type: { name: "float" }, value: /[eE][+-]?$/.test(text) ? `${text}0` : text };
  if (!text.includes(".")) {
    const value = BigInt(text);
    if (value <= 2_147_483_647n) return { kind: "literal", type: { name: "int" }, value: String(value) };
    return {
      kind: "literal",
      type: { name: "decimal", precision: Math.min(38, String(value).length), scale: 0 },
      value: text,
    };
  }
  const [integerPart = "", fraction = ""] = text.split(".");
  const digits = integerPart.replace(/^0+/, "").length;
  const precision = Math.max(1, Math.min(38, digits + fraction.length));
  const value = `${integerPart || "0"}${fraction === "" ? "" : `.${fraction}`}`;
  return { kind: "literal", type: { name: "decimal", precision, scale: Math.min(38, fraction.length) }, value };
}

function parseSymbol(stream: TokenStream): Expression {
  if (stream.accept("*")) return { kind: "star", path: [] };
  if (!stream.is("(")) throw stream.unexpected();
  return stream.parenthesized(() => {
    if (startsQuery(stream)) return { kind: "subquery", query: stream.query(stream) };
    return parseExpression(stream);
  });
}

/** True if a subquery follows: SELECT or WITH, possibly after more opening parentheses. */
export function startsQuery(stream: TokenStream): boolean {
  let distance = 0;
  while (distance <= nestingMax && stream.peek(distance).text === "(" && stream.peek(distance).kind === "symbol")
    distance += 1;
  const { kind, keyword } = stream.peek(distance);
  return kind === "word" && (keyword === "SELECT" || keyword === "WITH");
}

function parseWord(stream: TokenStream): Expression {
  const { keyword } = stream.current;
  switch (keyword) {
    case "NULL":
      stream.next();
      return { kind: "literal", type: { name: "int" }, value: null };
    case "DEFAULT":
      stream.next();
      return { kind: "default" };
    case "CASE":
      return parseCase(stream);
    case "NEXT":
      if (!stream.is("NEXT", "VALUE", "FOR")) break;
      stream.expect("NEXT", "VALUE", "FOR");
      return { kind: "nextValue", path: stream.path(), line: stream.current.line };
    case "CAST":
    case "TRY_CAST":
      if (stream.peek(1).text !== "(") break;
      stream.next();
      return stream.parenthesized(() => {
        const operand = parseExpression(stream);
        stream.expect("AS");
        const type = parseDataType(stream, 30);
        return { kind: "cast", operand, type, isTry: keyword === "TRY_CAST", style: undefined };
      });
    case "CONVERT":
    case "TRY_CONVERT":
      if (stream.peek(1).text !== "(") break;
      stream.next();
      return stream.parenthesized(() => {
        const type = parseDataType(stream, 30);
        stream.expect(",");
        const operand = parseExpression(stream);
        const style = stream.accept(",") ? parseExpression(stream) : undefined;
        return { kind: "cast", operand, type, isTry: keyword === "TRY_CONVERT", style };
      });
    default:
  }
  if (bareFunctions.includes(keyword) && stream.peek(1).text !== "(" && stream.peek(1).text !== ".") {
    const { line } = stream.next();
    return { kind: "call", call: plainCall([keyword], [], line) };
  }
  if (reservedFunctions.includes(keyword) && stream.peek(1).text === "(") {
    const { line } = stream.next();
    return { kind: "call", call: parseCall(stream, [keyword], line) };
  }
  return parseName(stream);
}

function plainCall(path: readonly string[], list: readonly Expression[], line: number): Call {
  return { path, arguments: list, isDistinct: false, over: undefined, withinGroup: undefined, line };
}

/** A column, `t.*`, or a call. */
function parseName(stream: TokenStream): Expression {
  const { line } = stream.current;
  const path = [stream.identifier()];
  while (stream.accept(".")) {
    if (stream.accept("*")) return { kind: "star", path };
    path.push(stream.is(".") ? "" : stream.anyIdentifier());
  }
  if (stream.is("(")) return { kind: "call", call: parseCall(stream, path, line) };
  return { kind: "column", path, line };
}

/** Functions whose first argument is a date part such as `day`, not a column. */
const datePartFunctions = ["DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATENAME", "DATEPART", "DATETRUNC"];

/** Parses a call after its name: the arguments, and clauses such as OVER. */
export function parseCall(stream: TokenStream, path: readonly string[], line: number): Call {
  const name = (path.at(-1) ?? "").toUpperCase();
  let isDistinct = false;
  let condition: Predicate | undefined;
  const list = stream.parenthesized((): Expression[] => {
    if (stream.is(")")) return [];
    if (stream.accept("DISTINCT")) isDistinct = true;
    else stream.accept("ALL");
    if (path.length === 1 && datePartFunctions.includes(name)) {
      const part: Expression = { kind: "literal", type: { name: "varchar", length: 30 }, value: stream.identifier() };
      stream.expect(",");
      return [part, ...stream.list(() => parseExpression(stream))];
    }
    if (path.length === 1 && name === "IIF") {
      condition = parsePredicate(stream);
      stream.expect(",");
    }
    return stream.list(() => parseExpression(stream));
  });
  let withinGroup: OrderItem[] | undefined;
  if (stream.accept("WITHIN", "GROUP")) withinGroup = stream.parenthesized(() => parseOrderBy(stream));
  const over = stream.accept("OVER") ? parseWindow(stream) : undefined;
  return { path, arguments: list, isDistinct, over, withinGroup, line, ...(condition && { condition }) };
}

function parseWindow(stream: TokenStream): Window {
  return stream.parenthesized(() => {
    const partitionBy = stream.accept("PARTITION", "BY") ? stream.list(() => parseExpression(stream)) : [];
    const orderBy = stream.is("ORDER") ? parseOrderBy(stream) : [];
    let frame: string | undefined;
    if (stream.is("ROWS") || stream.is("RANGE")) {
      const words = [stream.next().keyword];
      if (stream.accept("BETWEEN")) {
        words.push("BETWEEN", frameBound(stream));
        stream.expect("AND");
        words.push("AND");
      }
      words.push(frameBound(stream));
      frame = words.join(" ");
    }
    return { partitionBy, orderBy, frame };
  });
}

function frameBound(stream: TokenStream): string {
  if (stream.accept("CURRENT", "ROW")) return "CURRENT ROW";
  const isNumber = stream.current.kind === "number" && /^\d{1,9}$/.test(stream.current.text);
  if (!isNumber && !stream.is("UNBOUNDED")) throw stream.unexpected();
  const amount = stream.next().keyword;
  if (stream.accept("PRECEDING")) return `${amount} PRECEDING`;
  stream.expect("FOLLOWING");
  return `${amount} FOLLOWING`;
}

function parseCase(stream: TokenStream): Expression {
  stream.expect("CASE");
  const operand = stream.is("WHEN") ? undefined : parseExpression(stream);
  const whens: { when: Expression | Predicate; consequent: Expression }[] = [];
  while (stream.accept("WHEN")) {
    const when = operand === undefined ? parsePredicate(stream) : parseExpression(stream);
    stream.expect("THEN");
    whens.push({ when, consequent: parseExpression(stream) });
  }
  if (whens.length === 0) throw stream.unexpected();
  const otherwise = stream.accept("ELSE") ? parseExpression(stream) : undefined;
  stream.expect("END");
  return { kind: "case", operand, whens, otherwise };
}

export function parsePredicate(stream: TokenStream): Predicate {
  return stream.nested(() => {
    let left = parseConjunction(stream);
    while (stream.accept("OR")) left = { kind: "or", left, right: parseConjunction(stream) };
    return left;
  });
}

function parseConjunction(stream: TokenStream): Predicate {
  let left = parseNegation(stream);
  while (stream.accept("AND")) left = { kind: "and", left, right: parseNegation(stream) };
  return left;
}

function parseNegation(stream: TokenStream): Predicate {
  if (stream.accept("NOT")) return { kind: "not", operand: stream.nested(() => parseNegation(stream)) };
  if (stream.accept("EXISTS")) return { kind: "exists", query: stream.parenthesized(() => stream.query(stream)) };
  if (stream.accept("UPDATE")) return { kind: "updated", column: stream.parenthesized(() => stream.identifier()) };
  if (stream.is("(") && !startsQuery(stream) && enclosesPredicate(stream))
    return stream.parenthesized(() => parsePredicate(stream));
  return parseComparison(stream);
}

/** True if the parentheses contain a condition rather than a value, which shows by an operator of conditions. */
function enclosesPredicate(stream: TokenStream): boolean {
  const group = stream.group();
  if (group === undefined) return false;
  return group.hasComparison || followsPredicate(stream, group.length);
}

/** True if a group that begins with another group is not an operand, such as the outer parentheses of `((a = 1))`. */
function followsPredicate(stream: TokenStream, distance: number): boolean {
  const { kind, keyword } = stream.peek(distance);
  if (stream.peek(1).keyword !== "(") return false;
  if (kind === "symbol") return keyword === ")" || keyword === ";" || keyword === ",";
  if (kind === "word") return !["IS", "IN", "LIKE", "BETWEEN", "NOT", "COLLATE"].includes(keyword);
  return kind === "end";
}

function parseComparison(stream: TokenStream): Predicate {
  const left = parseExpression(stream);
  if (stream.accept("IS")) {
    const isNegated = stream.accept("NOT");
    stream.expect("NULL");
    return { kind: "isNull", operand: left, isNegated };
  }
  const isNegated = stream.accept("NOT");
  if (stream.accept("BETWEEN")) {
    const low = parseExpression(stream);
    stream.expect("AND");
    return { kind: "between", operand: left, low, high: parseExpression(stream), isNegated };
  }
  if (stream.accept("IN")) {
    const list = stream.parenthesized((): readonly Expression[] | Query =>
      startsQuery(stream) ? stream.query(stream) : stream.list(() => parseExpression(stream)),
    );
    return { kind: "in", operand: left, list, isNegated };
  }
  if (stream.accept("LIKE")) {
    const pattern = parseExpression(stream);
    const escape = stream.accept("ESCAPE") ? parseExpression(stream) : undefined;
    return { kind: "like", operand: left, pattern, escape, isNegated };
  }
  const operator = stream.current.kind === "symbol" ? lookUp(comparisons, stream.current.text) : undefined;
  if (operator === undefined || isNegated) throw stream.unexpected();
  stream.next();
  for (const quantifier of ["ALL", "ANY", "SOME"]) {
    if (!stream.is(quantifier, "(")) continue;
    stream.next();
    const query = stream.parenthesized(() => stream.query(stream));
    return { kind: "quantified", operator, left, quantifier: quantifier === "ALL" ? "ALL" : "ANY", query };
  }
  return { kind: "compare", operator, left, right: parseExpression(stream) };
}

export function parseOrderBy(stream: TokenStream): OrderItem[] {
  stream.expect("ORDER", "BY");
  return stream.list(() => {
    const expression = parseExpression(stream);
    const isDescending = stream.accept("DESC");
    if (!isDescending) stream.accept("ASC");
    return { expression, isDescending };
  });
}
