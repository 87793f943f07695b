import type { RowFormat } from "../parse/ast.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { isBinary, isNumeric } from "../types/tsql-type.ts";
import type { OutputColumn } from "./context.ts";
import type { Level } from "./nested-rows.ts";

interface JsonColumn extends OutputColumn {
  readonly sql: string;
}

type JsonFormat = Extract<RowFormat, { kind: "json" }>;

/** The objects of AUTO over several tables: those of a table are an array in the object of the table before. */
export function jsonLevels(
  levels: readonly { readonly name: string; readonly columns: readonly JsonColumn[] }[],
  { includesNulls }: JsonFormat,
): Level[] {
  return levels.map(({ columns }, index) => {
    const members: Members = new Map();
    for (const column of columns) {
      requireName(column);
      add(members, [column.name], valueOf(column), column.name);
    }
    const next = levels[index + 1]?.name ?? "";
    if (index < levels.length - 1 && members.has(next)) throw duplicate(next);
    return {
      parts: [membersOf(members, includesNulls)],
      wrap([own = "''"], inner) {
        if (inner === undefined) return `'{' || ${own} || '}'`;
        const comma = `CASE ${own} WHEN '' THEN '' ELSE ',' END`;
        return `'{' || ${own} || ${comma} || ${escapeLiteral(`${keyOf(next)}[`)} || ${inner} || ']}'`;
      },
    };
  });
}

/** Members of an object: expressions, or objects by the parts of names with dots. */
type Members = Map<string, string | Members>;

/** The aggregate of FOR JSON over rows with these columns. */
export function emitJson(columns: readonly JsonColumn[], format: JsonFormat): string {
  const members: Members = new Map();
  for (const column of columns) {
    requireName(column);
    add(members, format.isAuto ? [column.name] : column.name.split("."), valueOf(column), column.name);
  }
  return jsonText(`string_agg(${objectOf(members, format.includesNulls)}, ',')`, format);
}

/** The text around the objects. */
export function jsonText(rows: string, format: JsonFormat): string {
  const array = format.hasArray ? `'[' || ${rows} || ']'` : rows;
  return format.root === undefined ? array : `${escapeLiteral(`{${keyOf(format.root)}`)} || ${array} || '}'`;
}

function requireName({ name }: JsonColumn): void {
  if (name !== "") return;
  const message =
    "Column expressions and data sources without names or aliases cannot be formatted as JSON text using FOR JSON clause. Add alias to the unnamed column or table.";
  throw new SqlError(13_605, message);
}

function duplicate(name: string): SqlError {
  const message = `Property '${name}' cannot be generated in JSON output due to a conflict with another column name or alias.`;
  return new SqlError(13_601, message);
}

function add(members: Members, path: readonly string[], value: string, name: string): void {
  const [key = "", ...rest] = path;
  const present = members.get(key);
  if (rest.length === 0 && present === undefined) members.set(key, value);
  else if (rest.length > 0 && typeof present !== "string") {
    const inner: Members = present ?? new Map();
    members.set(key, inner);
    add(inner, rest, value, name);
  } else throw duplicate(name);
}

/** An object; members that are NULL are absent, as are objects without members, unless NULLs are included. */
function objectOf(members: Members, includesNulls: boolean): string {
  return `('{' || ${membersOf(members, includesNulls)} || '}')`;
}

function membersOf(members: Members, includesNulls: boolean): string {
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
  return `array_to_string(ARRAY[${texts.join(", ")}]::text[], ',')`;
}

function keyOf(name: string): string {
  return `${JSON.stringify(name).replaceAll("/", String.raw`\/`)}:`;
}

/** The JSON of a value, which is NULL for NULL. */
function valueOf({ sql, type, isJson }: JsonColumn): string {
  if (isJson === true) return sql;
  if (type.name === "bit") return `(CASE ${sql} WHEN 0 THEN 'false' WHEN 1 THEN 'true' END)`;
  if (type.name === "sql_variant") return text(`holdfast_tsql.variant_to_text(${sql}, 126)`);
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
