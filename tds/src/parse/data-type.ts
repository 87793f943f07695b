import { lookUp } from "@holdfast/common/look-up.ts";
import { SqlError } from "../run/sql-error.ts";
import type { TsqlType, TypeName } from "../types/tsql-type.ts";
import { refuse, type RefusedFeature } from "./features.ts";
import type { TokenStream } from "./token-stream.ts";

/** Names with their synonyms; the default length of a column is 1. */
const names: Readonly<Record<string, TypeName>> = {
  BIT: "bit",
  TINYINT: "tinyint",
  SMALLINT: "smallint",
  INT: "int",
  INTEGER: "int",
  BIGINT: "bigint",
  DECIMAL: "decimal",
  DEC: "decimal",
  NUMERIC: "decimal",
  MONEY: "money",
  SMALLMONEY: "smallmoney",
  REAL: "real",
  FLOAT: "float",
  DATE: "date",
  TIME: "time",
  DATETIME2: "datetime2",
  DATETIMEOFFSET: "datetimeoffset",
  DATETIME: "datetime",
  SMALLDATETIME: "smalldatetime",
  CHAR: "char",
  CHARACTER: "char",
  VARCHAR: "varchar",
  NCHAR: "nchar",
  NVARCHAR: "nvarchar",
  TEXT: "text",
  NTEXT: "ntext",
  BINARY: "binary",
  VARBINARY: "varbinary",
  IMAGE: "image",
  UNIQUEIDENTIFIER: "uniqueidentifier",
  XML: "xml",
  SQL_VARIANT: "sql_variant",
  SYSNAME: "nvarchar",
  ROWVERSION: "rowversion",
  TIMESTAMP: "rowversion",
};

/** Types of SQL Server that no column or variable can have. */
const refusedTypes: Readonly<Record<string, RefusedFeature>> = {
  GEOGRAPHY: "spatial types",
  GEOMETRY: "spatial types",
  HIERARCHYID: "hierarchyid",
};

const lengthMax: Partial<Record<TypeName, number>> = {
  char: 8_000,
  varchar: 8_000,
  nchar: 4_000,
  nvarchar: 4_000,
  binary: 8_000,
  varbinary: 8_000,
};

/** `defaultLength` is 1 in declarations of columns and variables, and 30 in CAST and CONVERT. */
export function parseDataType(stream: TokenStream, defaultLength = 1): TsqlType {
  const { line } = stream.current;
  if (stream.accept("NATIONAL")) {
    stream.accept("CHARACTER");
    const isVarying = stream.accept("VARYING");
    return withLength(stream, isVarying ? "nvarchar" : "nchar", defaultLength);
  }
  if (stream.accept("DOUBLE", "PRECISION")) return { name: "float" };
  const path = stream.path();
  const written = path.at(-1) ?? "";
  const keyword = written.toUpperCase();
  const refused = path.length === 1 ? lookUp(refusedTypes, keyword) : undefined;
  if (refused !== undefined) throw refuse(refused, line, written);
  const isSystem = path.length === 1 || (path.length === 2 && path[0]?.toLowerCase() === "sys");
  const name = isSystem ? lookUp(names, keyword) : undefined;
  if (name === undefined) {
    if (stream.is("(")) throw new SqlError(2715, `Cannot find data type ${path.join(".")}.`, { line });
    return { name: "sql_variant", written: path };
  }
  if (keyword === "SYSNAME") return { name: "nvarchar", length: 128 };
  if ((keyword === "CHAR" || keyword === "CHARACTER") && stream.accept("VARYING"))
    return withLength(stream, "varchar", defaultLength);
  if (lengthMax[name] !== undefined) return withLength(stream, name, defaultLength);
  switch (name) {
    case "decimal": {
      const [precision = 18, scale = 0] = stream.is("(") ? numbers(stream) : [];
      if (precision < 1 || precision > 38 || scale > precision) {
        const message = `The scale ${scale} of '${written}' must be between 0 and the precision ${precision}.`;
        throw new SqlError(192, message, { severity: 15, line });
      }
      return { name, precision, scale };
    }
    case "float": {
      const [precision = 53] = stream.is("(") ? numbers(stream) : [];
      return { name: precision <= 24 ? "real" : "float" };
    }
    case "time":
    case "datetime2":
    case "datetimeoffset": {
      const [scale = 7] = stream.is("(") ? numbers(stream) : [];
      if (scale > 7) throw new SqlError(1002, `The scale ${scale} must be between 0 and 7.`, { line });
      return { name, scale };
    }
    case "xml":
      if (stream.is("(")) stream.parenthesized(() => stream.path());
      return { name };
    default:
      return { name };
  }
}

function withLength(stream: TokenStream, name: TypeName, defaultLength: number): TsqlType {
  if (!stream.is("(")) return { name, length: defaultLength };
  const { line } = stream.current;
  const max = lengthMax[name] ?? 8_000;
  return stream.parenthesized(() => {
    if (stream.accept("MAX")) return { name, length: "max" };
    const length = number(stream);
    if (length < 1 || length > max) {
      const message = `The size ${length} of the type '${name}' must be between 1 and ${max}.`;
      throw new SqlError(131, message, { severity: 15, line });
    }
    return { name, length };
  });
}

function numbers(stream: TokenStream): number[] {
  return stream.parenthesized(() => stream.list(() => number(stream)));
}

function number(stream: TokenStream): number {
  if (stream.current.kind !== "number" || !/^\d{1,9}$/.test(stream.current.text)) throw stream.unexpected();
  return Number(stream.next().text);
}
