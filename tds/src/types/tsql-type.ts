/** Names of the data types of T-SQL; `rowversion` is also written `timestamp`. */
export type TypeName =
  | "bit"
  | "tinyint"
  | "smallint"
  | "int"
  | "bigint"
  | "decimal"
  | "smallmoney"
  | "money"
  | "real"
  | "float"
  | "date"
  | "time"
  | "datetime2"
  | "datetimeoffset"
  | "datetime"
  | "smalldatetime"
  | "char"
  | "varchar"
  | "nchar"
  | "nvarchar"
  | "binary"
  | "varbinary"
  | "text"
  | "ntext"
  | "image"
  | "uniqueidentifier"
  | "xml"
  | "sql_variant"
  | "rowversion";

/**
 * A data type with its arguments. A value of it is text in the output format of PostgreSQL, such as `\x0aff` for
 * binary types and `2026-01-31 12:00:00.123` for datetime2, or null.
 */
export interface TsqlType {
  readonly name: TypeName;
  /** Characters of character types, bytes of binary types; absent for others. */
  readonly length?: number | "max";
  readonly precision?: number;
  /** Digits after the decimal point, of seconds for date and time types. */
  readonly scale?: number;
  /** Name of the collation of a text; absent for the service's. */
  readonly collation?: string;
  /** Name of a user-defined type as written, until `catalog/user-types.ts` replaces it by the type. */
  readonly written?: readonly string[];
  /** The user-defined type whose base type this is. */
  readonly alias?: UserTypeName & { readonly isNullable: boolean };
  /** A table type: only table variables and parameters have it. */
  readonly table?: UserTypeName;
}

/** Schema and name of a user-defined type in PostgreSQL. */
export interface UserTypeName {
  readonly schema: string;
  readonly name: string;
}

export type Value = string | null;

const characterTypes: readonly TypeName[] = ["char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml"];
const binaryTypes: readonly TypeName[] = ["binary", "varbinary", "image", "rowversion"];
const integerTypes: readonly TypeName[] = ["bit", "tinyint", "smallint", "int", "bigint"];
const exactTypes: readonly TypeName[] = [...integerTypes, "decimal", "smallmoney", "money"];
const temporalTypes: readonly TypeName[] = ["date", "time", "datetime2", "datetimeoffset", "datetime", "smalldatetime"];

export const isCharacter = ({ name }: TsqlType): boolean => characterTypes.includes(name);
export const isBinary = ({ name }: TsqlType): boolean => binaryTypes.includes(name);
export const isInteger = ({ name }: TsqlType): boolean => integerTypes.includes(name);
export const isNumeric = ({ name }: TsqlType): boolean =>
  exactTypes.includes(name) || name === "real" || name === "float";
export const isTemporal = ({ name }: TsqlType): boolean => temporalTypes.includes(name);

/** Precedence of types in operators and CASE, highest first; the lower operand is converted to the higher. */
const precedence: readonly TypeName[] = [
  "sql_variant",
  "xml",
  "datetimeoffset",
  "datetime2",
  "datetime",
  "smalldatetime",
  "date",
  "time",
  "float",
  "real",
  "decimal",
  "money",
  "smallmoney",
  "bigint",
  "int",
  "smallint",
  "tinyint",
  "bit",
  "ntext",
  "text",
  "image",
  "rowversion",
  "uniqueidentifier",
  "nvarchar",
  "nchar",
  "varchar",
  "char",
  "varbinary",
  "binary",
];

/** Common type of two operands, as in CASE and UNION. */
export function commonType(left: TsqlType, right: TsqlType): TsqlType {
  const common = commonOf(left, right);
  const collation = left.collation ?? right.collation;
  return collation === undefined || !isCharacter(common) ? common : { ...common, collation };
}

function commonOf(left: TsqlType, right: TsqlType): TsqlType {
  const higher = precedence.indexOf(left.name) <= precedence.indexOf(right.name) ? left : right;
  const lower = higher === left ? right : left;
  if (isCharacter(higher) && isCharacter(lower) && higher.length !== undefined && lower.length !== undefined) {
    const name = higher.name === "nchar" && lower.name === "varchar" ? "nvarchar" : higher.name;
    if (higher.length === "max" || lower.length === "max") return { name: variable(name), length: "max" };
    const length = Math.max(higher.length, lower.length);
    return { name: higher.length === lower.length ? name : variable(name), length };
  }
  if (higher.name === "decimal") {
    const lowerShape = decimalShape(lower);
    const higherShape = decimalShape(higher);
    if (lowerShape === undefined || higherShape === undefined) return higher;
    const scale = Math.max(higherShape.scale, lowerShape.scale);
    const integerDigits = Math.max(higherShape.precision - higherShape.scale, lowerShape.precision - lowerShape.scale);
    return {
      name: "decimal",
      precision: Math.min(38, integerDigits + scale),
      scale: Math.min(scale, 38 - Math.min(integerDigits, 38)),
    };
  }
  return higher;
}

function variable(name: TypeName): TypeName {
  if (name === "char") return "varchar";
  return name === "nchar" ? "nvarchar" : name;
}

const shapes: Partial<Record<TypeName, { precision: number; scale: number }>> = {
  bit: { precision: 1, scale: 0 },
  tinyint: { precision: 3, scale: 0 },
  smallint: { precision: 5, scale: 0 },
  int: { precision: 10, scale: 0 },
  bigint: { precision: 19, scale: 0 },
  smallmoney: { precision: 10, scale: 4 },
  money: { precision: 19, scale: 4 },
};

/** Precision and scale of an exact number as a decimal. */
export function decimalShape(type: TsqlType): { precision: number; scale: number } | undefined {
  if (type.name === "decimal") return { precision: type.precision ?? 38, scale: type.scale ?? 0 };
  return shapes[type.name];
}

/** Type in DDL: the name with its arguments, such as `decimal(18,2)`. */
export function typeText(type: TsqlType): string {
  const { name } = type;
  if (name === "decimal") return `decimal(${type.precision ?? 18},${type.scale ?? 0})`;
  if (type.length !== undefined) return `${name}(${type.length})`;
  if (type.scale !== undefined && ["time", "datetime2", "datetimeoffset"].includes(name))
    return `${name}(${type.scale})`;
  return name;
}
