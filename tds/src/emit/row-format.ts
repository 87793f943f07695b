import type { RowFormat } from "../parse/ast.ts";
import type { EmittedQuery, OutputColumn } from "./context.ts";
import { emitJson } from "./json-rows.ts";
import { emitXml } from "./xml-rows.ts";

/** The rows of a query as one text, which is NULL, or no row of a result, without rows. */
export function emitRowFormat({ sql, columns }: EmittedQuery, format: RowFormat): EmittedQuery {
  const names = columns.map((_, index) => `c${index}`);
  const formatted = columns.map((column, index) => ({ ...column, sql: `":rows".c${index}` }));
  const text = format.kind === "json" ? emitJson(formatted, format) : emitXml(formatted, format);
  const isXml = format.kind === "xml" && format.isTyped;
  const column: OutputColumn = {
    name:
      format.kind === "json" ? "JSON_F52E2B61-18A1-11d1-B105-00805F49916B" : "XML_F52E2B61-18A1-11d1-B105-00805F49916B",
    type: isXml ? { name: "xml" } : { name: "nvarchar", length: "max" },
    isNullable: true,
    isIdentity: false,
    ...(format.kind === "json" && { isJson: true }),
  };
  const value = isXml ? `(${text})::xml` : `(${text})::text`;
  return {
    sql: `SELECT ${value} FROM (${sql}) AS ":rows" (${names.join(", ")}) HAVING count(*) > 0`,
    columns: [column],
  };
}
