import { lookUp } from "@holdfast/common/look-up.ts";
import { SqlError } from "../run/sql-error.ts";
import type { TsqlType } from "../types/tsql-type.ts";
import { isCharacter, isNumeric } from "../types/tsql-type.ts";
import type { FunctionEmission, Typed } from "./context.ts";
import { implicitly } from "./conversions.ts";

const int: TsqlType = { name: "int" };
const datetime: TsqlType = { name: "datetime" };
const datetime2: TsqlType = { name: "datetime2", scale: 7 };

/** Parts of dates with their abbreviations. */
const parts: Readonly<Record<string, readonly string[]>> = {
  year: ["year", "yy", "yyyy"],
  quarter: ["quarter", "qq", "q"],
  month: ["month", "mm", "m"],
  dayofyear: ["dayofyear", "dy", "y"],
  day: ["day", "dd", "d"],
  week: ["week", "wk", "ww"],
  weekday: ["weekday", "dw", "w"],
  hour: ["hour", "hh"],
  minute: ["minute", "mi", "n"],
  second: ["second", "ss", "s"],
  millisecond: ["millisecond", "ms"],
  microsecond: ["microsecond", "mcs"],
  nanosecond: ["nanosecond", "ns"],
  iso_week: ["iso_week", "isowk", "isoww"],
};

/** Date part of a literal, to which the parser converts the first argument's name. */
function partOf(operand: Typed | undefined): string {
  const written = /^'([a-z_]+)'/i.exec(operand?.sql ?? "")?.[1]?.toLowerCase() ?? "";
  const found = Object.entries(parts).find(([, names]) => names.includes(written));
  if (found === undefined) throw new SqlError(155, `'${written}' is not a recognized date option.`, { severity: 15 });
  return found[0];
}

/** Converts a string or number operand to datetime. */
function moment(operand: Typed | undefined): Typed {
  if (operand === undefined) throw new SqlError(174, "The function requires a date.", { severity: 15 });
  if (isCharacter(operand.type)) return { ...implicitly(operand, datetime2), type: datetime };
  return isNumeric(operand.type) ? implicitly(operand, datetime) : operand;
}

const argument = (operand: Typed | undefined) => (operand === undefined ? "NULL" : implicitly(operand, int).sql);
const asTimestamp = (operand: Typed) => `(${operand.sql})::timestamp`;

/** Units of date_trunc; a week begins on Monday there, so it is not among them. */
const truncations: Readonly<Record<string, string>> = {
  year: "year",
  quarter: "quarter",
  month: "month",
  dayofyear: "day",
  day: "day",
  iso_week: "week",
  hour: "hour",
  minute: "minute",
  second: "second",
  millisecond: "milliseconds",
  microsecond: "microseconds",
};

/** Seconds of the parts: seconds, fraction and number of digits of the fraction. */
function secondsOf([seconds, fraction, digits]: readonly Typed[]): string {
  const [integer, part, scale] = [seconds, fraction, digits].map(argument);
  return `((${integer})::numeric + (${part})::numeric / 10 ^ (${scale}))::float8`;
}

function scaleOf(digits: Typed | undefined): number {
  const scale = Number(digits?.sql);
  if (!Number.isInteger(scale) || scale < 0 || scale > 7)
    throw new SqlError(
      10_760,
      "Scale argument is not valid. Valid expressions for data type are integer constants and integer constant expressions.",
    );
  return scale;
}

function current(sql: string, type: TsqlType): FunctionEmission {
  return { minimum: 0, maximum: 0, emit: () => ({ sql, type }) };
}

const datePart: FunctionEmission = {
  minimum: 2,
  maximum: 2,
  emit([part, date]) {
    return { sql: `holdfast_tsql.date_part_of('${partOf(part)}', ${timestampOf(moment(date))})`, type: int };
  },
};

/** Converts an operand to a timestamp; the date of a time is 1900-01-01. */
function timestampOf(operand: Typed): string {
  return operand.type.name === "time" ? `(date '1900-01-01' + ${operand.sql})` : asTimestamp(operand);
}

const partAlone = (part: string): FunctionEmission => ({
  minimum: 1,
  maximum: 1,
  emit: ([date]) => ({ sql: `extract(${part} FROM ${asTimestamp(moment(date))})::int4`, type: int }),
});

export const dateFunctions: Readonly<Record<string, FunctionEmission>> = {
  GETDATE: current("(statement_timestamp() AT TIME ZONE 'UTC')::timestamp(3)", datetime),
  GETUTCDATE: current("(statement_timestamp() AT TIME ZONE 'UTC')::timestamp(3)", datetime),
  CURRENT_TIMESTAMP: current("(statement_timestamp() AT TIME ZONE 'UTC')::timestamp(3)", datetime),
  SYSDATETIME: current("(statement_timestamp() AT TIME ZONE 'UTC')", datetime2),
  SYSUTCDATETIME: current("(statement_timestamp() AT TIME ZONE 'UTC')", datetime2),
  SYSDATETIMEOFFSET: current("statement_timestamp()", { name: "datetimeoffset", scale: 7 }),
  YEAR: partAlone("year"),
  MONTH: partAlone("month"),
  DAY: partAlone("day"),
  DATEPART: datePart,
  DATENAME: {
    minimum: 2,
    maximum: 2,
    emit([part, date]) {
      const type: TsqlType = { name: "nvarchar", length: 30 };
      return { sql: `holdfast_tsql.date_name_of('${partOf(part)}', ${timestampOf(moment(date))})`, type };
    },
  },
  DATEADD: {
    minimum: 3,
    maximum: 3,
    emit([part, amount, date]) {
      const base = moment(date);
      const sql = `holdfast_tsql.date_add('${partOf(part)}', ${argument(amount)}, ${timestampOf(base)})`;
      return {
        sql: base.type.name === "date" || base.type.name === "time" ? `(${sql})::${base.type.name}` : sql,
        type: base.type,
      };
    },
  },
  DATEDIFF: {
    minimum: 3,
    maximum: 3,
    emit([part, from, to]) {
      const list = `'${partOf(part)}', ${timestampOf(moment(from))}, ${timestampOf(moment(to))}`;
      return { sql: `holdfast_tsql.date_diff(${list})::int4`, type: int };
    },
  },
  DATEDIFF_BIG: {
    minimum: 3,
    maximum: 3,
    emit([part, from, to]) {
      const list = `'${partOf(part)}', ${timestampOf(moment(from))}, ${timestampOf(moment(to))}`;
      return { sql: `holdfast_tsql.date_diff(${list})`, type: { name: "bigint" } };
    },
  },
  EOMONTH: {
    minimum: 1,
    maximum: 2,
    emit([date, months]) {
      const shift = months === undefined ? "0" : argument(months);
      const start = `date_trunc('month', ${asTimestamp(moment(date))})`;
      return {
        sql: `(${start} + make_interval(months => (${shift})::int + 1) - interval '1 day')::date`,
        type: { name: "date" },
      };
    },
  },
  DATEFROMPARTS: {
    minimum: 3,
    maximum: 3,
    emit: (list) => ({ sql: `make_date(${list.map(argument).join(", ")})`, type: { name: "date" } }),
  },
  SMALLDATETIMEFROMPARTS: {
    minimum: 5,
    maximum: 5,
    emit: (list) => ({
      sql: `make_timestamp(${[...list.map(argument), "0"].join(", ")})`,
      type: { name: "smalldatetime" },
    }),
  },
  DATETIME2FROMPARTS: {
    minimum: 8,
    maximum: 8,
    emit: (list) => ({
      sql: `make_timestamp(${list.slice(0, 5).map(argument).join(", ")}, ${secondsOf(list.slice(5))})`,
      type: { name: "datetime2", scale: scaleOf(list[7]) },
    }),
  },
  TIMEFROMPARTS: {
    minimum: 5,
    maximum: 5,
    emit: (list) => ({
      sql: `make_time(${list.slice(0, 2).map(argument).join(", ")}, ${secondsOf(list.slice(2))})`,
      type: { name: "time", scale: scaleOf(list[4]) },
    }),
  },
  DATETRUNC: {
    minimum: 2,
    maximum: 2,
    emit([part, date]) {
      const base = moment(date);
      const unit = lookUp(truncations, partOf(part));
      if (unit === undefined)
        throw new SqlError(9810, `The datepart ${partOf(part)} is not supported by date function datetrunc.`);
      const sql = `date_trunc('${unit}', ${timestampOf(base)})`;
      const isPart = base.type.name === "date" || base.type.name === "time";
      return { sql: isPart ? `(${sql})::${base.type.name}` : sql, type: base.type };
    },
  },
  DATETIMEFROMPARTS: {
    minimum: 7,
    maximum: 7,
    emit(list) {
      const numbers = list.map(argument);
      const seconds = `(${numbers[5]})::float8 + (${numbers[6]})::float8 / 1000`;
      return { sql: `make_timestamp(${[...numbers.slice(0, 5), seconds].join(", ")})::timestamp(3)`, type: datetime };
    },
  },
};
