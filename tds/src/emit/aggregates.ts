import { decimalShape, isInteger, type TsqlType } from "../types/tsql-type.ts";
import type { Typed } from "./context.ts";

interface AggregateEmission {
  readonly call: string;
  readonly type: TsqlType;
  /** Cast of the complete call, including its OVER clause. */
  readonly wrap?: (sql: string) => string;
}

type Aggregate = (list: readonly Typed[], distinct: string, order: string | undefined) => AggregateEmission;

const int: TsqlType = { name: "int" };
const bigint: TsqlType = { name: "bigint" };
const float: TsqlType = { name: "float" };
const asInt = (sql: string) => `(${sql})::int4`;

const count: Aggregate = (list, distinct) => ({
  call: `count(${distinct}${list[0]?.sql ?? "*"})`,
  type: int,
  wrap: asInt,
});

/** The sum of integers has their type; a larger sum is error 8115. */
const sum: Aggregate = ([value], distinct) => {
  const call = `sum(${distinct}${value?.sql ?? "NULL"})`;
  const type = value?.type ?? int;
  if (type.name === "bigint") return { call, type, wrap: (sql) => `(${sql})::int8` };
  if (isInteger(type)) return { call, type: int, wrap: asInt };
  const shape = type.name === "decimal" ? decimalShape(type) : undefined;
  if (shape !== undefined) return { call, type: { name: "decimal", precision: 38, scale: shape.scale } };
  if (type.name === "smallmoney") return { call, type: { name: "money" } };
  return { call, type: type.name === "real" ? float : type };
};

const average: Aggregate = ([value], distinct) => {
  const call = `avg(${distinct}${value?.sql ?? "NULL"})`;
  const type = value?.type ?? int;
  if (isInteger(type)) {
    const isBig = type.name === "bigint";
    return { call, type: isBig ? bigint : int, wrap: (sql) => `trunc(${sql})::${isBig ? "int8" : "int4"}` };
  }
  const shape = type.name === "decimal" ? decimalShape(type) : undefined;
  if (shape !== undefined) {
    const scale = Math.max(6, shape.scale);
    return { call, type: { name: "decimal", precision: 38, scale }, wrap: (sql) => `(${sql})::numeric(38,${scale})` };
  }
  if (type.name === "money" || type.name === "smallmoney")
    return { call, type: { name: "money" }, wrap: (sql) => `(${sql})::numeric(19,4)` };
  return { call, type: float };
};

const sameType = (name: string): Aggregate => {
  return ([value], distinct) => ({ call: `${name}(${distinct}${value?.sql ?? "NULL"})`, type: value?.type ?? int });
};
const statistic = (name: string): Aggregate => {
  return ([value], distinct) => ({ call: `${name}(${distinct}(${value?.sql ?? "NULL"})::float8)`, type: float });
};
const rank =
  (name: string): Aggregate =>
  () => ({ call: `${name}()`, type: bigint });
/** LAG and LEAD take an offset and a default of the same type. */
const offset = (name: string): Aggregate => {
  return ([value, distance, otherwise]) => {
    const type = value?.type ?? int;
    const list = [
      value?.sql ?? "NULL",
      ...(distance ? [`(${distance.sql})::int4`] : []),
      ...(otherwise ? [otherwise.sql] : []),
    ];
    return { call: `${name}(${list.join(", ")})`, type };
  };
};

/** Aggregates and window functions by their names. */
export const aggregates: Readonly<Record<string, Aggregate>> = {
  COUNT: count,
  COUNT_BIG: (list, distinct) => ({ ...count(list, distinct, undefined), type: bigint, wrap: (sql) => sql }),
  SUM: sum,
  AVG: average,
  MIN: sameType("min"),
  MAX: sameType("max"),
  STDEV: statistic("stddev_samp"),
  STDEVP: statistic("stddev_pop"),
  VAR: statistic("var_samp"),
  VARP: statistic("var_pop"),
  STRING_AGG: ([value, separator], _, order = "") => ({
    call: `string_agg((${value?.sql ?? "NULL"})::text, (${separator?.sql ?? "NULL"})::text${order})`,
    type: {
      name: value?.type.name.startsWith("n") ? "nvarchar" : "varchar",
      length: value?.type.length === "max" ? "max" : 4_000,
    },
  }),
  ROW_NUMBER: rank("row_number"),
  RANK: rank("rank"),
  DENSE_RANK: rank("dense_rank"),
  NTILE: ([groups]) => ({ call: `ntile((${groups?.sql ?? "NULL"})::int4)`, type: bigint }),
  PERCENT_RANK: () => ({ call: "percent_rank()", type: float }),
  CUME_DIST: () => ({ call: "cume_dist()", type: float }),
  LAG: offset("lag"),
  LEAD: offset("lead"),
  FIRST_VALUE: sameType("first_value"),
  LAST_VALUE: sameType("last_value"),
};
