import type { RowFormat } from "../parse/ast.ts";
import type { EmittedQuery, OutputColumn } from "./context.ts";
import { emitJson, jsonLevels, jsonText } from "./json-rows.ts";
import { levelsOf, nestRows } from "./nested-rows.ts";
import { emitXml, xmlLevels, xmlText } from "./xml-rows.ts";

/**
 * The rows of a query as one text, which is NULL, or no row of a result, without rows. `names`: names in FROM as they
 * are written.
 */
export function emitRowFormat(
  { sql, columns }: EmittedQuery,
  format: RowFormat,
  names: ReadonlyMap<string, string>,
): EmittedQuery {
  const formatted = columns.map((column, index) => ({ ...column, sql: `":rows".c${index}` }));
  const isXml = format.kind === "xml" && format.isTyped;
  const column: OutputColumn = {
    name:
      format.kind === "json" ? "JSON_F52E2B61-18A1-11d1-B105-00805F49916B" : "XML_F52E2B61-18A1-11d1-B105-00805F49916B",
    type: isXml ? { name: "xml" } : { name: "nvarchar", length: "max" },
    isNullable: true,
    isIdentity: false,
    ...(format.kind === "json" && { isJson: true }),
  };
  const source = `(${sql}) AS ":rows" (${columns.map((_, index) => `c${index}`).join(", ")})`;
  const { from, text } = emitText(formatted, format, source, names);
  const value = isXml ? `(${text})::xml` : `(${text})::text`;
  return { sql: `SELECT ${value} FROM ${from} HAVING count(*) > 0`, columns: [column] };
}

function emitText(
  columns: readonly (OutputColumn & { readonly sql: string })[],
  format: RowFormat,
  source: string,
  names: ReadonlyMap<string, string>,
): { readonly from: string; readonly text: string } {
  // Expressions alone are of the first table.
  const [first = ""] = names.keys();
  const levels = format.isAuto ? levelsOf(columns, first) : [];
  const written = levels.map((level) => ({ ...level, name: names.get(level.source) ?? level.source }));
  if (format.kind === "json") {
    if (levels.length < 2) return { from: source, text: emitJson(columns, format) };
    const { from, aggregate } = nestRows(jsonLevels(written, format), source, ",");
    return { from, text: jsonText(aggregate, format) };
  }
  if (!format.isAuto) return { from: source, text: emitXml(columns, format) };
  const { from, aggregate } = nestRows(xmlLevels(written, format), source, "");
  return { from, text: xmlText(aggregate, format) };
}
