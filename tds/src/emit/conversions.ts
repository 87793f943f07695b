import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { assignmentType, castType } from "../types/backend-type.ts";
import {
  isBinary,
  isCharacter,
  isInteger,
  isNumeric,
  isTemporal,
  type TsqlType,
  typeText,
} from "../types/tsql-type.ts";
import type { Typed } from "./context.ts";

/** CAST and CONVERT: longer values are truncated, and fractions are removed from integers without rounding. */
export function castTo(operand: Typed, type: TsqlType, style?: string): Typed {
  const target = castType(type);
  const sql = castText(operand, type, target, style);
  // A cast of a text to a text keeps the collation.
  if (!isCharacter(operand.type) || !isCharacter(type) || type.name === "xml") return { sql, type, isCollated: false };
  const { isCollated, isExplicit } = operand;
  return { sql, type: collatedLike(type, operand.type), isCollated, ...(isExplicit === true && { isExplicit }) };
}

/** The type with the collation of another type of text. */
export function collatedLike(type: TsqlType, { collation }: TsqlType): TsqlType {
  return collation === undefined || type.collation !== undefined ? type : { ...type, collation };
}

/** TRY_CAST: NULL for a string that does not represent a value of the type. */
export function tryCastTo(operand: Typed, type: TsqlType, style?: string): Typed {
  if (!isCharacter(operand.type) || type.name === "sql_variant") return castTo(operand, type, style);
  const target = castType(type);
  const cast = castText({ ...operand, sql: "q.v" }, type, target, style);
  // The string comes from a subquery: PostgreSQL evaluates casts of constants before the condition of a CASE.
  const source = `(SELECT (${operand.sql})::text AS v OFFSET 0) AS q`;
  const sql = `(SELECT CASE WHEN pg_input_is_valid(q.v, '${target}') THEN ${cast} END FROM ${source})`;
  return { sql, type, isCollated: false };
}

/** Implicit conversion of a value for a column; the column's domain checks its length. */
export function assignTo(operand: Typed, type: TsqlType): string {
  if (operand.isNull === true) return "NULL";
  if (type.name === "binary" && isBinary(operand.type) && typeof type.length === "number")
    return `(${operand.sql} || decode(repeat('00', greatest(0, ${type.length} - octet_length(${operand.sql}))), 'hex'))`;
  if (sameFamily(operand.type, type)) return operand.sql;
  if (!isImplicit(operand.type, type)) throw implicitConversionError(operand.type, type);
  return castText(operand, type, assignmentType(type), undefined);
}

/** Implicit conversion of an operand to the common type of both operands. */
export function implicitly(operand: Typed, type: TsqlType): Typed {
  if (operand.isNull === true || sameFamily(operand.type, type)) return operand;
  if (!isImplicit(operand.type, type)) throw implicitConversionError(operand.type, type);
  const target = type.name === "datetime" || type.name === "smalldatetime" ? "timestamp" : assignmentType(type);
  return { sql: castText(operand, type, target, undefined), type, isCollated: operand.isCollated };
}

function implicitConversionError(from: TsqlType, to: TsqlType): SqlError {
  const message = `Implicit conversion from data type ${typeText(from)} to ${typeText(to)} is not allowed. Use CONVERT.`;
  return new SqlError(257, message);
}

/** True for types between which PostgreSQL converts without an explicit cast. */
function sameFamily(from: TsqlType, to: TsqlType): boolean {
  if (from.name === to.name) return true;
  if (isCharacter(from) && isCharacter(to)) return from.name !== "xml" && to.name !== "xml";
  if (isBinary(from) && isBinary(to)) return true;
  if (isInteger(to)) return to.name !== "bit" && isInteger(from);
  return isNumeric(from) && isNumeric(to);
}

function isImplicit(from: TsqlType, to: TsqlType): boolean {
  if (from.name === "sql_variant") return false;
  if (to.name === "sql_variant") return from.name !== "xml" && !["text", "ntext", "image"].includes(from.name);
  if (isTemporal(from) && isNumeric(to)) return false;
  if (isNumeric(from) && isTemporal(to)) return to.name === "datetime" || to.name === "smalldatetime";
  if (isCharacter(from) && isBinary(to)) return false;
  if (from.name === "uniqueidentifier" && isNumeric(to)) return false;
  return !(isNumeric(from) && to.name === "uniqueidentifier");
}

function castText(operand: Typed, type: TsqlType, target: string, style: string | undefined): string {
  const { sql, type: from } = operand;
  if (operand.isNull === true) return `NULL::${target}`;
  if (type.name === "sql_variant") return variantOf(operand);
  if (from.name === "sql_variant") return fromVariant(sql, type, target, style);
  if (isNumeric(type) && (from.name === "datetime" || from.name === "smalldatetime"))
    return castText({ ...operand, sql: daysOf(sql, isInteger(type)), type: { name: "decimal" } }, type, target, style);
  if (type.name === "bit") {
    if (isNumeric(from)) return `(${sql} <> 0)::int::int2`;
    return `holdfast_tsql.text_to_bit((${sql})::text)`;
  }
  if (isInteger(type)) {
    if (isInteger(from)) return inRange(type, `(${sql})::${target}`);
    if (isNumeric(from)) return inRange(type, `trunc(${sql})::${target}`);
    if (isCharacter(from)) return inRange(type, `holdfast_tsql.text_to_integer((${sql})::text)::${target}`);
    if (isBinary(from)) return `holdfast_tsql.binary_to_integer(${sql})::${target}`;
  }
  if (isTemporal(type)) {
    if (type.name === "smalldatetime" && from.name !== "smalldatetime")
      return toMinute(castText(operand, { name: "datetime2", scale: 6 }, "timestamp", style));
    if (from.name === "time" && type.name !== "time") return `(date '1900-01-01' + ${sql})::${target}`;
    if (type.name === "time" && isTemporal(from)) return `(${sql})::${target}`;
    if (isNumeric(from)) return `(timestamp '1900-01-01' + (${sql}) * interval '1 day')::${target}`;
    if (isCharacter(from) && style !== undefined)
      return `holdfast_tsql.text_to_timestamp((${sql})::text, ${style})::${target}`;
    if (isCharacter(from) && !/^'[^']*\S[^']*'::text$/.test(sql))
      return `holdfast_tsql.moment_text((${sql})::text)::${target}`;
    return `(${sql})::${target}`;
  }
  // PostgreSQL converts a real to numeric with six digits.
  if (from.name === "real" && (type.name === "decimal" || type.name.endsWith("money")))
    return `(${sql})::float8::${target}`;
  if (isCharacter(type)) {
    if (isTemporal(from)) {
      const fallback = from.name === "datetime" || from.name === "smalldatetime" ? "0" : "121";
      const moment = from.name === "time" || from.name === "datetimeoffset" ? sql : `(${sql})::timestamp`;
      return `holdfast_tsql.timestamp_to_text(${moment}, ${style ?? fallback}, '${from.name}')::${target}`;
    }
    if (from.name === "uniqueidentifier") return `upper((${sql})::text)::${target}`;
    if (isBinary(from)) return `holdfast_tsql.binary_to_text(${sql}, ${style ?? "0"})::${target}`;
    if (from.name === "money" || from.name === "smallmoney") return `round(${sql}, 2)::${target}`;
    return `(${sql})::${target}`;
  }
  // Characters after those of an identifier are ignored.
  if (type.name === "uniqueidentifier" && isBinary(from)) return `holdfast_tsql.binary_to_guid(${sql})`;
  if (type.name === "uniqueidentifier" && isCharacter(from)) return `left(btrim((${sql})::text, '{}'), 36)::uuid`;
  if (isBinary(type)) return fitBinary(binaryText(operand, type, style), type);
  return `(${sql})::${target}`;
}

/** A minute: 29.998 seconds and less are rounded down. */
function toMinute(sql: string): string {
  return `date_trunc('minute', (${sql}) + interval '30.001 seconds')`;
}

/** Days since 1900, whole ones for integers, as which 12:00 is rounded up. */
function daysOf(sql: string, rounds: boolean): string {
  const days = `(extract(epoch FROM (${sql})::timestamp - timestamp '1900-01-01') / 86400)`;
  return rounds ? `round(${days})` : days;
}

/** PostgreSQL has no type of one byte: the domain of columns checks the range. */
function inRange({ name }: TsqlType, sql: string): string {
  return name === "tinyint" ? `(${sql})::holdfast_tsql."tinyint"::int2` : sql;
}

/** The text of a variant: the base type and the value. */
function variantOf({ sql, type }: Typed): string {
  if (type.name === "sql_variant") return sql;
  const max = type.name.startsWith("n") ? 4_000 : 8_000;
  const sized = type.length === "max" ? { ...type, length: max } : type;
  const hasDigits = type.name !== "decimal" || type.precision !== undefined;
  const base: TsqlType = hasDigits ? sized : { name: "decimal", precision: 38, scale: 10 };
  const head = escapeLiteral(`${typeText(base)}:`);
  if (isBinary(type)) return `(${head} || '\\x' || encode(${sql}, 'hex'))`;
  return `(${head} || (${sql})::text)`;
}

/** Conversion by the base type of the value, which is known only when the statement runs. */
function fromVariant(sql: string, type: TsqlType, target: string, style: string | undefined): string {
  if (type.name === "bit") return `(holdfast_tsql.variant_to_number(${sql}) <> 0)::int::int2`;
  if (isInteger(type)) return `trunc(holdfast_tsql.variant_to_number(${sql}))::${target}`;
  if (isNumeric(type)) return `holdfast_tsql.variant_to_number(${sql})::${target}`;
  if (isBinary(type)) return fitBinary(`holdfast_tsql.variant_to_binary(${sql})`, type);
  if (isCharacter(type)) return `holdfast_tsql.variant_to_text(${sql}, ${style ?? "NULL"})::${target}`;
  if (isTemporal(type)) return `holdfast_tsql.variant_to_temporal(${sql})::${target}`;
  return `holdfast_tsql.variant_value(${sql})::${target}`;
}

/** Truncates longer values; pads shorter ones of a type with a fixed length with zeros. */
function fitBinary(sql: string, { name, length }: TsqlType): string {
  if (typeof length !== "number") return sql;
  if (name === "binary") return `substring(${sql} || decode(repeat('00', ${length}), 'hex') FROM 1 FOR ${length})`;
  return `substring(${sql} FROM 1 FOR ${length})`;
}

function binaryText({ sql, type: from }: Typed, type: TsqlType, style: string | undefined): string {
  if (isCharacter(from)) {
    const national = from.name.startsWith("n");
    return `holdfast_tsql.text_to_binary((${sql})::text, ${style ?? "0"}, ${national})`;
  }
  if (isInteger(from)) return `holdfast_tsql.integer_to_binary((${sql})::int8, ${integerBytes(from, type)})`;
  if (from.name === "uniqueidentifier") return `holdfast_tsql.guid_to_binary(${sql})`;
  return `(${sql})::bytea`;
}

function integerBytes(from: TsqlType, to: TsqlType): number {
  if (to.name === "binary" && typeof to.length === "number") return Math.min(8, to.length);
  if (from.name === "bigint") return 8;
  if (from.name === "int") return 4;
  return from.name === "smallint" ? 2 : 1;
}
