import { escapeLiteral } from "../run/backend.ts";
import type { Expression, OrderItem, Predicate, Query } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";
import { castType } from "../types/backend-type.ts";
import { commonType, decimalShape, isCharacter, isNumeric, isTemporal, type TsqlType } from "../types/tsql-type.ts";
import { qualified, quoteName } from "../bind/object-name.ts";
import type { Scope } from "../bind/scope.ts";
import type { EmitContext, Typed } from "./context.ts";
import { emitCollate, kindOf, textCollation } from "./collations.ts";
import { castTo, implicitly, tryCastTo } from "./conversions.ts";

/** Translates an expression to PostgreSQL. */
export function emitExpression(expression: Expression, scope: Scope, context: EmitContext): Typed {
  switch (expression.kind) {
    case "literal":
      return emitLiteral(expression.type, expression.value);
    case "variable":
      return context.variable(expression.name);
    case "column":
      return emitColumn(expression.path, expression.line, scope);
    case "unary":
      return emitUnary(expression.operator, emitExpression(expression.operand, scope, context));
    case "binary": {
      const left = emitExpression(expression.left, scope, context);
      return emitBinary(expression.operator, left, emitExpression(expression.right, scope, context));
    }
    case "call":
      return context.emitters.call(expression.call, scope, context);
    case "case":
      return emitCase(expression, scope, context);
    case "cast": {
      const operand = emitExpression(expression.operand, scope, context);
      const style = expression.style && `(${emitExpression(expression.style, scope, context).sql})::int`;
      return expression.isTry ? tryCastTo(operand, expression.type, style) : castTo(operand, expression.type, style);
    }
    case "subquery":
      return emitSubquery(expression.query, scope, context);
    case "collate":
      return emitCollate(emitExpression(expression.operand, scope, context), expression.collation, context);
    case "nextValue": {
      const sequence = qualified(context.objectName(expression.path, expression.line));
      return { sql: `nextval(${escapeLiteral(sequence)}::regclass)`, type: { name: "bigint" }, isCollated: false };
    }
    case "star":
    case "default":
      throw new SqlError(102, `Incorrect syntax near '${expression.kind === "star" ? "*" : "DEFAULT"}'.`, {
        severity: 15,
      });
  }
}

function emitLiteral(type: TsqlType, value: string | null): Typed {
  if (value === null) return { sql: "NULL", type, isCollated: false, isNull: true };
  if (isCharacter(type)) return { sql: `${escapeLiteral(value)}::text`, type, isCollated: false };
  if (type.name === "varbinary") return { sql: `${escapeLiteral(value)}::bytea`, type, isCollated: false };
  if (type.name === "float") return { sql: `'${value}'::float8`, type, isCollated: false };
  if (type.name === "money") return { sql: `'${value}'::numeric(19,4)`, type, isCollated: false };
  // A long number without a fraction is a bigint of PostgreSQL, whose functions of numbers convert it to float8.
  if (type.name === "decimal") return { sql: `'${value}'::numeric`, type, isCollated: false };
  return { sql: value, type, isCollated: false };
}

function emitColumn(path: readonly string[], line: number, scope: Scope): Typed {
  const { source, column, name } = scope.resolve(path, line);
  const sql = source.alias === "" ? quoteName(name) : `${quoteName(source.text ?? source.alias)}.${quoteName(name)}`;
  if (column === undefined) return { sql, type: { name: "nvarchar", length: "max" }, isCollated: true };
  const { spelling, isNullable, isIdentity = false } = column;
  return {
    sql,
    type: column.type,
    isCollated: true,
    column: { spelling, isNullable, isIdentity, source: source.alias },
  };
}

function emitSubquery(query: Query, scope: Scope, context: EmitContext): Typed {
  const { sql, columns } = context.emitters.query(query, context, scope);
  const [column, ...others] = columns;
  if (column === undefined || others.length > 0) {
    const message = "Only one expression can be specified in the select list of a subquery that is used as a value.";
    throw new SqlError(116, message);
  }
  const { type, isJson } = column;
  return { sql: `(${sql})`, type, isCollated: query.format === undefined, ...(isJson === true && { isJson }) };
}

function emitUnary(operator: string, operand: Typed): Typed {
  const number = isCharacter(operand.type) ? implicitly(operand, { name: "int" }) : operand;
  return { sql: `(${operator} ${number.sql})`, type: number.type, isCollated: false };
}

function emitBinary(operator: string, left: Typed, right: Typed): Typed {
  if (operator === "+" && isCharacter(left.type) && isCharacter(right.type)) {
    const type = concatenated(left.type, right.type);
    return { sql: `(${left.sql} || ${right.sql})`, type, isCollated: left.isCollated || right.isCollated };
  }
  if (operator === "+" && left.type.name === "varbinary" && right.type.name === "varbinary")
    return { sql: `(${left.sql} || ${right.sql})`, type: { name: "varbinary", length: "max" }, isCollated: false };
  if ((operator === "+" || operator === "-") && isTemporal(left.type) && isNumeric(right.type)) {
    if (left.type.name !== "datetime" && left.type.name !== "smalldatetime") throw incompatible(left, right, operator);
    return { sql: `(${left.sql} ${operator} (${right.sql}) * interval '1 day')`, type: left.type, isCollated: false };
  }
  const common =
    left.isNull === true ? right.type : right.isNull === true ? left.type : commonType(left.type, right.type);
  if (!isNumeric(common)) throw incompatible(left, right, operator);
  const a = implicitly(left, common).sql;
  const b = implicitly(right, common).sql;
  if (left.isNull === true || right.isNull === true)
    return { sql: `NULL::${castType(common)}`, type: common, isCollated: false };
  if ("&|^".includes(operator))
    return { sql: `(${a} ${operator === "^" ? "#" : operator} ${b})`, type: common, isCollated: false };
  return arithmetic(operator, a, b, shapeOf(left), shapeOf(right), common);
}

function incompatible(left: Typed, right: Typed, operator: string): SqlError {
  const message = `The data types ${left.type.name} and ${right.type.name} are incompatible in the operator ${operator}.`;
  return new SqlError(402, message);
}

function concatenated(left: TsqlType, right: TsqlType): TsqlType {
  const isNational = left.name.startsWith("n") || right.name.startsWith("n");
  const name = isNational ? "nvarchar" : "varchar";
  if (typeof left.length !== "number" || typeof right.length !== "number") return { name, length: "max" };
  return { name, length: Math.min(isNational ? 4_000 : 8_000, left.length + right.length) };
}

/** Precision and scale of an operand; the precision of a literal integer is its number of digits. */
function shapeOf({ type, sql }: Typed): Shape | undefined {
  return /^\d+$/.test(sql) ? { precision: sql.length, scale: 0 } : decimalShape(type);
}

/** Precision and scale of results follow the rules of T-SQL for decimals. */
function arithmetic(
  operator: string,
  a: string,
  b: string,
  left: Shape | undefined,
  right: Shape | undefined,
  common: TsqlType,
): Typed {
  if (common.name !== "decimal" || left === undefined || right === undefined)
    return { sql: `(${a} ${operator} ${b})`, type: common, isCollated: false };
  const { precision, scale } = limited(resultShape(operator, left, right));
  const type: TsqlType = { name: "decimal", precision, scale };
  return { sql: `(${a} ${operator} ${b})::numeric(${precision},${scale})`, type, isCollated: false };
}

interface Shape {
  readonly precision: number;
  readonly scale: number;
}

function resultShape(operator: string, left: Shape, right: Shape): Shape {
  const integerDigits = Math.max(left.precision - left.scale, right.precision - right.scale);
  switch (operator) {
    case "*":
      return { precision: left.precision + right.precision + 1, scale: left.scale + right.scale };
    case "/": {
      const scale = Math.max(6, left.scale + right.precision + 1);
      return { precision: left.precision - left.scale + right.scale + scale, scale };
    }
    case "%": {
      const scale = Math.max(left.scale, right.scale);
      return { precision: Math.min(left.precision - left.scale, right.precision - right.scale) + scale, scale };
    }
    default: {
      const scale = Math.max(left.scale, right.scale);
      return { precision: integerDigits + scale + 1, scale };
    }
  }
}

/** Limits a result to 38 digits by shortening its fraction, down to six digits. */
function limited({ precision, scale }: Shape): Shape {
  if (precision <= 38) return { precision: Math.max(1, precision), scale };
  const integerDigits = precision - scale;
  return { precision: 38, scale: Math.max(Math.min(scale, 6), 38 - integerDigits) };
}

function emitCase(expression: Extract<Expression, { kind: "case" }>, scope: Scope, context: EmitContext): Typed {
  const operand = expression.operand && emitExpression(expression.operand, scope, context);
  const branches = expression.whens.map(({ when, consequent }) => {
    const condition =
      operand === undefined
        ? emitPredicate(when as Predicate, scope, context)
        : emitComparison("=", operand, emitExpression(when as Expression, scope, context), context);
    return { condition, value: emitExpression(consequent, scope, context) };
  });
  const otherwise = expression.otherwise && emitExpression(expression.otherwise, scope, context);
  const values = [...branches.map(({ value }) => value), ...(otherwise === undefined ? [] : [otherwise])];
  const type = typeOfAll(values);
  const whens = branches
    .map(({ condition, value }) => `WHEN ${condition} THEN ${implicitly(value, type).sql}`)
    .join(" ");
  const tail = otherwise === undefined ? "" : ` ELSE ${implicitly(otherwise, type).sql}`;
  return { sql: `(CASE ${whens}${tail} END)`, type, isCollated: values.some(({ isCollated }) => isCollated) };
}

/** Common type of several operands, ignoring NULL literals. */
export function typeOfAll(values: readonly Typed[]): TsqlType {
  const typed = values.filter(({ isNull }) => isNull !== true);
  return typed.map(({ type }) => type).reduce(commonType, typed[0]?.type ?? { name: "int" });
}

export function emitPredicate(predicate: Predicate, scope: Scope, context: EmitContext): string {
  const expression = (operand: Expression) => emitExpression(operand, scope, context);
  switch (predicate.kind) {
    case "and":
    case "or": {
      const left = emitPredicate(predicate.left, scope, context);
      return `(${left} ${predicate.kind === "and" ? "AND" : "OR"} ${emitPredicate(predicate.right, scope, context)})`;
    }
    case "not":
      return `(NOT ${emitPredicate(predicate.operand, scope, context)})`;
    case "compare":
      return emitComparison(predicate.operator, expression(predicate.left), expression(predicate.right), context);
    case "quantified": {
      const { sql } = context.emitters.query(predicate.query, context, scope);
      return `(${expression(predicate.left).sql} ${predicate.operator} ${predicate.quantifier} (${sql}))`;
    }
    case "isNull":
      return `(${expression(predicate.operand).sql} IS ${predicate.isNegated ? "NOT " : ""}NULL)`;
    case "between": {
      const operand = expression(predicate.operand);
      const low = emitComparison(">=", operand, expression(predicate.low), context);
      const high = emitComparison("<=", operand, expression(predicate.high), context);
      return `(${predicate.isNegated ? "NOT " : ""}(${low} AND ${high}))`;
    }
    case "in":
      return emitIn(predicate, scope, context);
    case "like": {
      const escape = predicate.escape === undefined ? "NULL" : `(${expression(predicate.escape).sql})::text`;
      const matched = expression(predicate.operand);
      if (matched.type.name === "sql_variant")
        throw new SqlError(8116, "Argument data type sql_variant is invalid for argument 1 of like function.");
      const pattern = expression(predicate.pattern);
      const list = [`(${matched.sql})::text`, `(${pattern.sql})::text`, escape, ...kindOf([matched, pattern], context)];
      return `(${predicate.isNegated ? "NOT " : ""}holdfast_tsql.is_like(${list.join(", ")}))`;
    }
    case "updated":
      return context.updated(predicate.column);
    case "exists":
      return `EXISTS (${context.emitters.query(predicate.query, context, scope).sql})`;
  }
}

function emitIn(predicate: Extract<Predicate, { kind: "in" }>, scope: Scope, context: EmitContext): string {
  const operand = emitExpression(predicate.operand, scope, context);
  const negation = predicate.isNegated ? "NOT " : "";
  if ("kind" in predicate.list) {
    const { sql, columns } = context.emitters.query(predicate.list, context, scope);
    const type = commonType(operand.type, columns[0]?.type ?? operand.type);
    return `(${implicitly(operand, type).sql} ${negation}IN (${sql}))`;
  }
  const values = predicate.list.map((value) => emitExpression(value, scope, context));
  // One comparison for each value, since the conversion depends on the types of both.
  return `(${negation}(${values.map((value) => emitComparison("=", operand, value, context)).join(" OR ")}))`;
}

/**
 * Compares two operands in their common type. Strings are compared under the collation of a column or COLLATE clause,
 * or that of the service, without trailing blanks.
 */
export function emitComparison(operator: string, left: Typed, right: Typed, context: EmitContext): string {
  if (left.isNull === true || right.isNull === true) return `(${left.sql} ${operator} ${right.sql})`;
  const type = commonType(left.type, right.type);
  const a = implicitly(left, type);
  const b = implicitly(right, type);
  if (type.name === "sql_variant") return `(${variantKey(a)} ${operator} ${variantKey(b)})`;
  if (!isCharacter(type)) return `(${a.sql} ${operator} ${b.sql})`;
  textCollation([left, right], context);
  const isCollated = left.isCollated || right.isCollated;
  return `(${trimmed(a)} ${operator} ${trimmed(b)}${isCollated ? "" : ` ${context.collate({ name: "varchar" })}`})`;
}

/** Variants compare by the families of their base types, then by their values. */
function variantKey({ sql }: Typed): string {
  return `holdfast_tsql.variant_key(${sql})`;
}

/** Removes trailing blanks, except of columns: an index on the column can then be used. */
function trimmed(operand: Typed): string {
  return operand.column === undefined ? `rtrim(${operand.sql})` : operand.sql;
}

/** NULLs are the lowest values. A NOT NULL column gets no NULLS clause, so that every index can be used. */
export function emitOrder({ expression, isDescending }: OrderItem, scope: Scope, context: EmitContext): string {
  const operand = emitExpression(expression, scope, context);
  const needsCollation = isCharacter(operand.type) && !operand.isCollated;
  const nulls = operand.column?.isNullable === false ? "" : ` NULLS ${isDescending ? "LAST" : "FIRST"}`;
  if (operand.type.name === "sql_variant") return `${variantKey(operand)}${isDescending ? " DESC" : ""}${nulls}`;
  const collate = needsCollation ? ` ${context.collate(operand.type)}` : "";
  return `${operand.sql}${collate}${isDescending ? " DESC" : ""}${nulls}`;
}
