import type { RowFormat } from "../parse/ast.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { isBinary, isNumeric } from "../types/tsql-type.ts";
import type { OutputColumn } from "./context.ts";

interface JsonColumn extends OutputColumn {
  readonly sql: string;
}

/** Members of an object: expressions, or objects by the parts of names with dots. */
type Members = Map<string, string | Members>;

/** The aggregate of FOR JSON over rows with these columns. */
export function emitJson(columns: readonly JsonColumn[], format: Extract<RowFormat, { kind: "json" }>): string {
  const members: Members = new Map();
  for (const column of columns) {
    if (column.name === "") {
      const message =
        "Column expressions and data sources without names or aliases cannot be formatted as JSON text using FOR JSON clause. Add alias to the unnamed column or table.";
      throw new SqlError(13_605, message);
    }
    add(members, format.isNested ? column.name.split(".") : [column.name], valueOf(column), column.name);
  }
  const rows = `string_agg(${objectOf(members, format.includesNulls)}, ',')`;
  const array = format.hasArray ? `'[' || ${rows} || ']'` : rows;
  return format.root === undefined ? array : `${escapeLiteral(`{${keyOf(format.root)}`)} || ${array} || '}'`;
}

function add(members: Members, path: readonly string[], value: string, name: string): void {
  const [key = "", ...rest] = path;
  const present = members.get(key);
  if (rest.length === 0 && present === undefined) members.set(key, value);
  else if (rest.length > 0 && typeof present !== "string") {
    const inner: Members = present ?? new Map();
    members.set(key, inner);
    add(inner, rest, value, name);
  } else {
    const message = `Property '${name}' cannot be generated in JSON output due to a conflict with another column name or alias.`;
    throw new SqlError(13_601, message);
  }
}

/** An object; members that are NULL are absent, as are objects without members, unless NULLs are included. */
function objectOf(members: Members, includesNulls: boolean): string {
  const texts = [...members].map(([key, value]) => {
    const text =
      typeof value !== "string"
        ? includesNulls
          ? objectOf(value, true)
          : `NULLIF(${objectOf(value, false)}, '{}')`
        : includesNulls
          ? `COALESCE(${value}, 'null')`
          : value;
    return `${escapeLiteral(keyOf(key))} || ${text}`;
  });
  return `('{' || array_to_string(ARRAY[${texts.join(", ")}]::text[], ',') || '}')`;
}

function keyOf(name: string): string {
  return `${JSON.stringify(name).replaceAll("/", String.raw`\/`)}:`;
}

/** The JSON of a value, which is NULL for NULL. */
function valueOf({ sql, type, isJson }: JsonColumn): string {
  if (isJson === true) return sql;
  if (type.name === "bit") return `(CASE ${sql} WHEN 0 THEN 'false' WHEN 1 THEN 'true' END)`;
  if (isNumeric(type)) return `to_json(${sql})::text`;
  if (isBinary(type)) return text(`translate(encode(${sql}, 'base64'), E'\\n', '')`);
  if (type.name === "uniqueidentifier") return `to_json(upper((${sql})::text))::text`;
  const isTemporal = ["date", "time", "datetime", "datetime2", "smalldatetime", "datetimeoffset"].includes(type.name);
  return isTemporal ? `to_json(${sql})::text` : text(`(${sql})::text`);
}

/** A string, with the escape of slashes that SQL Server has. */
function text(sql: string): string {
  return String.raw`replace(to_json(${sql})::text, '/', '\/')`;
}
