import { qualified } from "../bind/object-name.ts";
import type { TsqlType, TypeName } from "./tsql-type.ts";

/** Types of PostgreSQL for values in expressions; only columns have domains with T-SQL names. */
const castTypes: Readonly<Record<TypeName, string>> = {
  bit: "int2",
  tinyint: "int2",
  smallint: "int2",
  int: "int4",
  bigint: "int8",
  decimal: "numeric",
  smallmoney: "numeric(10,4)",
  money: "numeric(19,4)",
  real: "float4",
  float: "float8",
  date: "date",
  time: "time",
  datetime2: "timestamp",
  datetimeoffset: "timestamptz",
  datetime: "timestamp(3)",
  smalldatetime: "timestamp(0)",
  char: "bpchar",
  varchar: "varchar",
  nchar: "bpchar",
  nvarchar: "varchar",
  text: "text",
  ntext: "text",
  binary: "bytea",
  varbinary: "bytea",
  image: "bytea",
  uniqueidentifier: "uuid",
  xml: "xml",
  sql_variant: "text",
  rowversion: "bytea",
};

/** The type of a cast. PostgreSQL has at most six digits of fractional seconds. */
export function castType(type: TsqlType): string {
  const base = castTypes[type.name];
  switch (type.name) {
    case "decimal":
      return type.precision === undefined ? base : `numeric(${type.precision},${type.scale ?? 0})`;
    case "time":
    case "datetime2":
    case "datetimeoffset":
      return `${base}(${Math.min(6, type.scale ?? 7)})`;
    case "char":
    case "nchar":
    case "varchar":
    case "nvarchar":
      return typeof type.length === "number" ? `${base}(${type.length})` : "text";
    default:
      return base;
  }
}

/** Type for assignments, without a length: the column checks it. */
export function assignmentType(type: TsqlType): string {
  switch (type.name) {
    case "char":
    case "nchar":
    case "varchar":
    case "nvarchar":
      return "text";
    case "decimal":
    case "money":
    case "smallmoney":
      return "numeric";
    default:
      return castType(type);
  }
}

/** Types whose columns are domains in the schema `holdfast_tsql`, so that the catalog of PostgreSQL has their names. */
const domainNames: readonly TypeName[] = [
  "bit",
  "tinyint",
  "money",
  "smallmoney",
  "datetime",
  "smalldatetime",
  "text",
  "ntext",
  "image",
  "sql_variant",
];
const sizedDomains: readonly TypeName[] = ["char", "varchar", "binary", "varbinary"];

/** Type of a column, and the domain to create first if the type is a domain with a length. */
export function columnType(type: TsqlType): { sql: string; domain?: { name: TypeName; length: number } } {
  const { name, length, alias } = type;
  if (alias !== undefined) return { sql: qualified(alias) };
  if (domainNames.includes(name)) return { sql: `holdfast_tsql."${name}"` };
  if (sizedDomains.includes(name) && typeof length === "number")
    return { sql: `holdfast_tsql."${name}(${length})"`, domain: { name, length } };
  if (name === "varchar" && length === "max") return { sql: 'holdfast_tsql."varchar(max)"' };
  return { sql: castType(type) };
}

/** Base types by their object identifiers, which are fixed in PostgreSQL. */
const byOid: Readonly<Record<number, (typmod: number) => TsqlType>> = {
  16: () => ({ name: "bit" }),
  17: () => ({ name: "varbinary", length: "max" }),
  19: () => ({ name: "nvarchar", length: 128 }),
  20: () => ({ name: "bigint" }),
  21: () => ({ name: "smallint" }),
  23: () => ({ name: "int" }),
  26: () => ({ name: "bigint" }),
  142: () => ({ name: "xml" }),
  700: () => ({ name: "real" }),
  701: () => ({ name: "float" }),
  1042: (typmod) => characters("nchar", typmod),
  1043: (typmod) => characters("nvarchar", typmod),
  1082: () => ({ name: "date" }),
  1083: (typmod) => ({ name: "time", scale: digits(typmod) }),
  1114: (typmod) => ({ name: "datetime2", scale: digits(typmod) }),
  1184: (typmod) => ({ name: "datetimeoffset", scale: digits(typmod) }),
  1700: (typmod) => {
    if (typmod < 4) return { name: "decimal", precision: 38, scale: 10 };
    return { name: "decimal", precision: Math.min(38, ((typmod - 4) >> 16) & 0xffff), scale: (typmod - 4) & 0x7ff };
  },
  2950: () => ({ name: "uniqueidentifier" }),
};

function characters(name: "nchar" | "nvarchar", typmod: number): TsqlType {
  const length = typmod - 4;
  return {
    name: length > 0 && length <= 4_000 ? name : "nvarchar",
    length: length > 0 && length <= 4_000 ? length : "max",
  };
}

/** Scale of a PostgreSQL time type: its max of six digits is presented as seven. */
function digits(typmod: number): number {
  return typmod < 0 || typmod === 6 ? 7 : typmod;
}

/** T-SQL type of a PostgreSQL type; nvarchar(max) for types that T-SQL lacks. */
export function typeOfOid(oid: number, typmod: number): TsqlType {
  return byOid[oid]?.(typmod) ?? { name: "nvarchar", length: "max" };
}

/** The type of a column from its domain in `holdfast_tsql`; undefined for other domains. */
export function typeOfDomain(domain: string): TsqlType | undefined {
  const match = /^([a-z_]+)(?:\((\d+|max)\))?$/.exec(domain);
  const name = match?.[1];
  if (name === undefined || !Object.hasOwn(castTypes, name)) return undefined;
  const length = match?.[2];
  if (length === undefined) return { name: name as TypeName };
  return { name: name as TypeName, length: length === "max" ? "max" : Number(length) };
}
