import { type TsqlType, type TypeName, typeText } from "./tsql-type.ts";

/** The value of a sql_variant: its base type, and the text of a value of that type. */
export interface Variant {
  readonly type: TsqlType;
  readonly text: string;
}

const baseTypes: readonly TypeName[] = [
  "bit",
  "tinyint",
  "smallint",
  "int",
  "bigint",
  "decimal",
  "smallmoney",
  "money",
  "real",
  "float",
  "date",
  "time",
  "datetime2",
  "datetimeoffset",
  "datetime",
  "smalldatetime",
  "char",
  "varchar",
  "nchar",
  "nvarchar",
  "binary",
  "varbinary",
  "uniqueidentifier",
];

/** Pattern of a stored variant, such as `decimal(5,2):1.50`. PostgreSQL's functions of variants have the same. */
const pattern = /^([a-z0-9]+)(?:\((\d+)(?:,(\d+))?\))?:/;

/** The stored text of a variant. */
export function variantText(type: TsqlType, text: string): string {
  return `${typeText(type)}:${text}`;
}

/** A text without a base type, which clients of PostgreSQL can write, is an nvarchar. */
export function variantOf(value: string): Variant {
  const [head, name, first, second] = pattern.exec(value) ?? [];
  const base = baseTypes.find((each) => each === name);
  if (head === undefined || base === undefined)
    return { type: { name: "nvarchar", length: 4_000 }, text: value.slice(0, 4_000) };
  const text = value.slice(head.length);
  if (base === "decimal")
    return { type: { name: base, precision: Number(first ?? 38), scale: Number(second ?? 0) }, text };
  if (first === undefined) return { type: { name: base }, text };
  const isTime = base === "time" || base === "datetime2" || base === "datetimeoffset";
  return { type: { name: base, ...(isTime ? { scale: Number(first) } : { length: Number(first) }) }, text };
}
