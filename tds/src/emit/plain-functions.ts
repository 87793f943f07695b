import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { isBinary, isCharacter, isInteger, isNumeric, isTemporal, type TsqlType } from "../types/tsql-type.ts";
import type { FunctionEmission, Typed } from "./context.ts";
import { kindOf } from "./collations.ts";
import { castTo, implicitly } from "./conversions.ts";

const int: TsqlType = { name: "int" };
const float: TsqlType = { name: "float" };
const variant: TsqlType = { name: "sql_variant" };
const decimal38: TsqlType = { name: "decimal", precision: 38, scale: 0 };
const nvarchar = (length: number | "max" = 4_000): TsqlType => ({ name: "nvarchar", length });

const text = (operand: Typed | undefined): string => {
  if (operand === undefined) return "NULL";
  if (isCharacter(operand.type)) return `(${operand.sql})::text`;
  return castTo(operand, nvarchar("max")).sql;
};
const integer = (operand: Typed | undefined): string =>
  operand === undefined ? "NULL" : isInteger(operand.type) ? operand.sql : castTo(operand, int).sql;
const double = (operand: Typed | undefined): string =>
  operand === undefined ? "NULL" : `(${implicitly(operand, float).sql})::float8`;

/** Type of a string function by its operand: national or not, with the length given or the operand's. */
function stringTypeLike(operand: Typed | undefined, length?: number | "max"): TsqlType {
  const isNational = operand?.type.name.startsWith("n") === true;
  const operandLength = operand?.type.length;
  const max = isNational ? 4_000 : 8_000;
  return {
    name: isNational ? "nvarchar" : "varchar",
    length: operandLength === "max" ? "max" : (length ?? operandLength ?? max),
  };
}

type Emit = FunctionEmission["emit"];
const fixed = (count: number, emit: Emit): FunctionEmission => ({ minimum: count, maximum: count, emit });
const ranged = (minimum: number, maximum: number, emit: Emit): FunctionEmission => ({ minimum, maximum, emit });
/** A text function of one argument. */
const textual = (name: string): FunctionEmission =>
  fixed(1, ([value]) => ({ sql: `${name}(${text(value)})`, type: stringTypeLike(value) }));
const doubled = (name: string): FunctionEmission =>
  fixed(1, ([value]) => ({ sql: `${name}(${double(value)})`, type: float }));
/** A number function whose result has the type of its argument. */
const numeric = (name: string): FunctionEmission =>
  fixed(1, ([value]) => {
    const number = numberOf(value);
    const type = widened(number.type);
    const operand = type === number.type ? number : castTo(number, type);
    return { sql: `${name}(${operand.sql})`, type };
  });

function numberOf(operand: Typed | undefined): Typed {
  if (operand === undefined) throw new SqlError(174, "The function requires 1 argument(s).", { severity: 15 });
  return isNumeric(operand.type) ? operand : implicitly(operand, float);
}

/**
 * A call that searches the catalog, as a subquery that runs once for a query rather than for each row. A call with a
 * column, whose name has quotes, remains as it is.
 */
function onceFor(call: string): string {
  const hasNames = call.replaceAll(/'(?:[^']|'')*'/g, "").includes('"');
  return hasNames ? call : `(SELECT ${call})`;
}

/** Bytes that a value has in SQL Server. */
function dataLength(operand: Typed | undefined): string {
  if (operand === undefined) return "NULL";
  const { sql, type } = operand;
  if (isBinary(type)) return `octet_length(${sql})`;
  if (isCharacter(type)) return `(char_length((${sql})::text)${type.name.startsWith("n") ? " * 2" : ""})`;
  if (type.name === "sql_variant") return `octet_length(${sql})`;
  return `(CASE WHEN ${sql} IS NOT NULL THEN ${fixedBytes(type)} END)`;
}

const fixedSizes: Partial<Record<TsqlType["name"], number>> = {
  bit: 1,
  tinyint: 1,
  smallint: 2,
  int: 4,
  bigint: 8,
  smallmoney: 4,
  money: 8,
  real: 4,
  float: 8,
  date: 3,
  datetime: 8,
  smalldatetime: 4,
  uniqueidentifier: 16,
};

function fixedBytes({ name, precision = 18, scale = 7 }: TsqlType): number {
  const time = scale <= 2 ? 3 : scale <= 4 ? 4 : 5;
  switch (name) {
    case "decimal":
      return precision <= 9 ? 5 : precision <= 19 ? 9 : precision <= 28 ? 13 : 17;
    case "time":
      return time;
    case "datetime2":
      return time + 3;
    case "datetimeoffset":
      return time + 5;
    default:
      return fixedSizes[name] ?? 0;
  }
}

/** Type of the result of a number function: small integers become int, smallmoney money, and real float. */
function widened(type: TsqlType): TsqlType {
  switch (type.name) {
    case "bit":
    case "tinyint":
    case "smallint":
      return int;
    case "smallmoney":
      return { name: "money" };
    case "real":
      return float;
    default:
      return type;
  }
}

/** A value as JSON: the text of JSON_QUERY is JSON, other texts are strings. */
function jsonOf(operand: Typed | undefined): string {
  if (operand === undefined || operand.isNull === true) return "NULL::jsonb";
  if (operand.isJson === true) return `(${operand.sql})::jsonb`;
  if (operand.type.name === "bit") return `to_jsonb(${operand.sql} <> 0)`;
  return isNumeric(operand.type) ? `to_jsonb(${operand.sql})` : `to_jsonb(${text(operand)})`;
}

const max8000 = { national: 4_000, other: 8_000 };
const longest = (value: Typed | undefined) =>
  value?.type.name.startsWith("n") === true ? max8000.national : max8000.other;

export const plainFunctions: Readonly<Record<string, FunctionEmission>> = {
  LEN: fixed(1, ([value]) => {
    if (value !== undefined && isBinary(value.type)) return { sql: `octet_length(${value.sql})`, type: int };
    return { sql: `char_length(rtrim(${text(value)}))`, type: int };
  }),
  DATALENGTH: fixed(1, ([value]) => ({ sql: dataLength(value), type: int })),
  UPPER: textual("upper"),
  LOWER: textual("lower"),
  LTRIM: textual("ltrim"),
  RTRIM: textual("rtrim"),
  TRIM: textual("btrim"),
  REVERSE: textual("reverse"),
  SUBSTRING: fixed(3, ([value, start, length]) => ({
    sql: `substring(${text(value)}, ${integer(start)}, ${integer(length)})`,
    type: stringTypeLike(value),
  })),
  LEFT: fixed(2, ([value, length]) => ({
    sql: `left(${text(value)}, ${integer(length)})`,
    type: stringTypeLike(value),
  })),
  RIGHT: fixed(2, ([value, length]) => ({
    sql: `right(${text(value)}, ${integer(length)})`,
    type: stringTypeLike(value),
  })),
  CHARINDEX: ranged(2, 3, ([part, value, start], context) => ({
    sql: `holdfast_tsql.char_index(${[text(part), text(value), start === undefined ? "1" : integer(start), ...kindOf([part, value], context)].join(", ")})`,
    type: int,
  })),
  PATINDEX: fixed(2, ([pattern, value], context) => ({
    sql: `holdfast_tsql.pat_index(${[text(pattern), text(value), ...kindOf([pattern, value], context)].join(", ")})`,
    type: int,
  })),
  REPLACE: fixed(3, ([value, from, to], context) => ({
    sql: `holdfast_tsql.replace_text(${[text(value), text(from), text(to), ...kindOf([value, from], context)].join(", ")})`,
    type: stringTypeLike(value, longest(value)),
  })),
  STUFF: fixed(4, ([value, start, length, insert]) => ({
    sql: `overlay(${text(value)} placing COALESCE(${text(insert)}, '') from ${integer(start)} for ${integer(length)})`,
    type: stringTypeLike(value, longest(value)),
  })),
  REPLICATE: fixed(2, ([value, count]) => ({
    sql: `repeat(${text(value)}, ${integer(count)})`,
    type: stringTypeLike(value, longest(value)),
  })),
  SPACE: fixed(1, ([count]) => ({ sql: `repeat(' ', ${integer(count)})`, type: { name: "varchar", length: 8_000 } })),
  CONCAT: ranged(2, 254, (list) => ({ sql: `concat(${list.map(text).join(", ")})`, type: nvarchar() })),
  CONCAT_WS: ranged(3, 254, (list) => ({ sql: `concat_ws(${list.map(text).join(", ")})`, type: nvarchar() })),
  CHAR: fixed(1, ([code]) => ({ sql: `chr(${integer(code)})`, type: { name: "char", length: 1 } })),
  NCHAR: fixed(1, ([code]) => ({ sql: `chr(${integer(code)})`, type: { name: "nchar", length: 1 } })),
  ASCII: fixed(1, ([value]) => ({ sql: `ascii(${text(value)})`, type: int })),
  UNICODE: fixed(1, ([value]) => ({ sql: `ascii(${text(value)})`, type: int })),
  QUOTENAME: ranged(1, 2, ([value]) => ({
    sql: `('[' || replace((${text(value)}) COLLATE "C", ']', ']]') || ']')`,
    type: nvarchar(258),
  })),
  ABS: numeric("abs"),
  CEILING: numeric("ceil"),
  FLOOR: numeric("floor"),
  SIGN: numeric("sign"),
  SQRT: doubled("sqrt"),
  EXP: doubled("exp"),
  LOG10: doubled("log"),
  SIN: doubled("sin"),
  COS: doubled("cos"),
  TAN: doubled("tan"),
  ASIN: doubled("asin"),
  ACOS: doubled("acos"),
  ATAN: doubled("atan"),
  RADIANS: doubled("radians"),
  DEGREES: doubled("degrees"),
  LOG: ranged(1, 2, ([value, base]) => ({
    sql: base === undefined ? `ln(${double(value)})` : `(ln(${double(value)}) / ln(${double(base)}))`,
    type: float,
  })),
  ATN2: fixed(2, ([y, x]) => ({ sql: `atan2(${double(y)}, ${double(x)})`, type: float })),
  SQUARE: fixed(1, ([value]) => ({ sql: `power(${double(value)}, 2)`, type: float })),
  PI: fixed(0, () => ({ sql: "pi()", type: float })),
  RAND: ranged(0, 1, () => ({ sql: "random()", type: float })),
  POWER: fixed(2, ([value, exponent]) => {
    const own = numberOf(value);
    const number = { ...own, type: widened(own.type) };
    if (number.type.name === "float" || number.type.name === "real")
      return { sql: `power(${number.sql}, ${double(exponent)})`, type: float };
    const result = castTo(
      {
        sql: `power((${number.sql})::numeric, (${exponent?.sql ?? "NULL"})::numeric)`,
        type: { name: "decimal" },
        isCollated: false,
      },
      number.type,
    );
    return { sql: result.sql, type: number.type };
  }),
  ROUND: ranged(2, 3, ([value, digits, truncates]) => {
    const number = numberOf(value);
    const rounded = `round((${number.sql})::numeric, ${integer(digits)})`;
    const cut = `trunc((${number.sql})::numeric, ${integer(digits)})`;
    const sql =
      truncates === undefined ? rounded : `(CASE WHEN ${integer(truncates)} = 0 THEN ${rounded} ELSE ${cut} END)`;
    return { sql: castTo({ sql, type: { name: "decimal" }, isCollated: false }, number.type).sql, type: number.type };
  }),
  NEWID: fixed(0, () => ({ sql: "gen_random_uuid()", type: { name: "uniqueidentifier" } })),
  NEWSEQUENTIALID: fixed(0, () => ({ sql: "gen_random_uuid()", type: { name: "uniqueidentifier" } })),
  SQL_VARIANT_PROPERTY: fixed(2, ([value, property]) => ({
    sql: `holdfast_tsql.variant_property(${value === undefined ? "NULL" : castTo(value, variant).sql}, ${text(property)})`,
    type: variant,
  })),
  ISNUMERIC: fixed(1, ([value]) => ({ sql: `pg_input_is_valid(${text(value)}, 'numeric')::int4`, type: int })),
  ISDATE: fixed(1, ([value]) => ({ sql: `pg_input_is_valid(${text(value)}, 'timestamp')::int4`, type: int })),
  ISJSON: fixed(1, ([value]) => ({ sql: `pg_input_is_valid(${text(value)}, 'json')::int4`, type: int })),
  JSON_VALUE: fixed(2, ([value, path]) => ({
    sql: `holdfast_tsql.json_value(${text(value)}, ${text(path)})`,
    type: nvarchar(),
  })),
  JSON_QUERY: ranged(1, 2, ([value, path]) => ({
    sql: `holdfast_tsql.json_query(${text(value)}, ${path === undefined ? "'$'" : text(path)})`,
    type: nvarchar("max"),
    isJson: true,
  })),
  JSON_MODIFY: fixed(3, ([value, path, changed]) => ({
    sql: `holdfast_tsql.json_modify(${text(value)}, ${text(path)}, ${jsonOf(changed)})`,
    type: nvarchar("max"),
    isJson: true,
  })),
  FORMAT: ranged(2, 3, ([value, format, culture]) => {
    const kind = value !== undefined && isTemporal(value.type) ? "moment" : "number";
    const moment =
      value?.type.name === "time" ? `(date '1900-01-01' + ${value.sql})` : `(${value?.sql ?? "NULL"})::timestamp`;
    const operand = kind === "moment" ? moment : `(${numberOf(value).sql})::numeric`;
    const list = [operand, text(format), culture === undefined ? "'en-US'" : text(culture)];
    return { sql: `holdfast_tsql.format_${kind}(${list.join(", ")})`, type: nvarchar() };
  }),
  STR: ranged(1, 3, ([value, length, decimals]) => {
    const size = length === undefined ? "10" : integer(length);
    const digits = decimals === undefined ? "0" : integer(decimals);
    const rounded = `round((${double(value)})::numeric, ${digits})::text`;
    const sql = `(CASE WHEN char_length(${rounded}) > ${size} THEN repeat('*', ${size}) ELSE lpad(${rounded}, ${size}) END)`;
    return { sql, type: { name: "varchar", length: 8_000 } };
  }),
  PARSENAME: fixed(2, ([name, part]) => ({
    sql: `NULLIF(btrim(split_part(${text(name)} COLLATE "C", '.', -(${integer(part)})), '[]"'), '')`,
    type: nvarchar(128),
  })),
  TRANSLATE: fixed(3, ([value, from, to]) => ({
    sql: `translate(${text(value)}, ${text(from)}, ${text(to)})`,
    type: stringTypeLike(value, longest(value)),
  })),
  HASHBYTES: fixed(2, ([algorithm, value]) => {
    const data =
      value !== undefined && isCharacter(value.type)
        ? castTo(value, { name: "varbinary", length: "max" }).sql
        : (value?.sql ?? "NULL");
    const sql = `holdfast_tsql.hash_bytes(${text(algorithm)}, ${data})`;
    return { sql, type: { name: "varbinary", length: 8_000 } };
  }),
  CHECKSUM: ranged(1, 254, (list) => ({
    sql: `hashtext(lower(concat_ws('|', ${list.map(text).join(", ")}) COLLATE "C"))`,
    type: int,
  })),
  BINARY_CHECKSUM: ranged(1, 254, (list) => ({
    sql: `hashtext(concat_ws('|', ${list.map(text).join(", ")}) COLLATE "C")`,
    type: int,
  })),
  COT: doubled("cot"),
  IDENT_CURRENT: fixed(1, ([name]) => ({ sql: `holdfast_tsql.identity_of(${text(name)}, 'last')`, type: decimal38 })),
  IDENT_SEED: fixed(1, ([name]) => ({ sql: `holdfast_tsql.identity_of(${text(name)}, 'seed')`, type: decimal38 })),
  IDENT_INCR: fixed(1, ([name]) => ({ sql: `holdfast_tsql.identity_of(${text(name)}, 'increment')`, type: decimal38 })),
  COL_LENGTH: fixed(2, ([table, column]) => ({
    sql: `holdfast_tsql.col_length(${text(table)}, ${text(column)})`,
    type: { name: "smallint" },
  })),
  DATABASEPROPERTYEX: fixed(2, ([name, property]) => ({
    sql: `holdfast_tsql.database_property(${text(name)}, ${text(property)})`,
    type: variant,
  })),
  TRIGGER_NESTLEVEL: ranged(0, 3, () => ({ sql: "pg_trigger_depth()", type: int })),
  OBJECT_ID: ranged(1, 2, ([name, kind]) => ({
    sql: onceFor(`holdfast_tsql.object_id(${text(name)}, ${text(kind)})`),
    type: int,
  })),
  OBJECT_NAME: ranged(1, 2, ([id]) => ({ sql: `holdfast_tsql.object_name(${integer(id)})`, type: nvarchar(128) })),
  OBJECT_SCHEMA_NAME: ranged(1, 2, ([id]) => ({
    sql: `holdfast_tsql.object_schema_name(${integer(id)})`,
    type: nvarchar(128),
  })),
  OBJECT_DEFINITION: fixed(1, ([id]) => ({
    sql: `holdfast_tsql.object_definition(${integer(id)})`,
    type: nvarchar("max"),
  })),
  SCHEMA_NAME: ranged(0, 1, ([id]) => ({ sql: `holdfast_tsql.schema_name(${integer(id)})`, type: nvarchar(128) })),
  SCHEMA_ID: ranged(0, 1, ([name]) => ({ sql: onceFor(`holdfast_tsql.schema_id(${text(name)})`), type: int })),
  TYPE_ID: fixed(1, ([name]) => ({ sql: onceFor(`holdfast_tsql.type_id(${text(name)})`), type: int })),
  TYPE_NAME: fixed(1, ([id]) => ({ sql: `holdfast_tsql.type_name(${integer(id)})`, type: nvarchar(128) })),
  COL_NAME: fixed(2, ([id, column]) => ({
    sql: `holdfast_tsql.col_name(${integer(id)}, ${integer(column)})`,
    type: nvarchar(128),
  })),
  COLUMNPROPERTY: fixed(3, ([id, column, property]) => ({
    sql: `holdfast_tsql.column_property(${integer(id)}, ${text(column)}, ${text(property)})`,
    type: int,
  })),
  OBJECTPROPERTY: fixed(2, ([id, property]) => ({
    sql: `holdfast_tsql.object_property(${integer(id)}, ${text(property)})`,
    type: int,
  })),
  COLLATIONPROPERTY: fixed(2, ([name, property]) => ({
    sql: onceFor(`holdfast_tsql.collation_property(${text(name)}, ${text(property)})`),
    type: variant,
  })),
  SERVERPROPERTY: fixed(1, ([name]) => ({ sql: `holdfast_tsql.server_property(${text(name)})`, type: nvarchar(128) })),
  DB_NAME: ranged(0, 1, ([id], { session }) => ({
    sql:
      id === undefined ? `${escapeLiteral(session.databaseName)}::text` : `holdfast_tsql.database_name(${integer(id)})`,
    type: nvarchar(128),
  })),
  DB_ID: ranged(0, 1, ([name], { session }) => ({
    sql: `holdfast_tsql.database_id(${name === undefined ? escapeLiteral(session.databaseName) : text(name)})`,
    type: int,
  })),
  HAS_DBACCESS: fixed(1, ([name]) => ({
    sql: `(CASE WHEN holdfast_tsql.database_id(${text(name)}) IS NOT NULL THEN 1 END)`,
    type: int,
  })),
  SUSER_SNAME: ranged(0, 1, () => ({ sql: "session_user::text", type: nvarchar(128) })),
  SUSER_NAME: ranged(0, 1, () => ({ sql: "session_user::text", type: nvarchar(128) })),
  ORIGINAL_LOGIN: fixed(0, () => ({ sql: "session_user::text", type: nvarchar(128) })),
  SYSTEM_USER: fixed(0, () => ({ sql: "session_user::text", type: nvarchar(128) })),
  USER_NAME: ranged(0, 1, () => ({ sql: "current_user::text", type: nvarchar(128) })),
  CURRENT_USER: fixed(0, () => ({ sql: "current_user::text", type: nvarchar(128) })),
  SESSION_USER: fixed(0, () => ({ sql: "current_user::text", type: nvarchar(128) })),
  USER: fixed(0, () => ({ sql: "current_user::text", type: nvarchar(128) })),
};
