import type { TsqlType, Value } from "../types/tsql-type.ts";
import { code, isText, length, odbcTypes, precision, scale } from "./odbc-procedures.ts";
import type { RequestContext } from "./request-context.ts";

/** Procedures and functions whose names match the patterns; NULL matches each. */
const routinesQuery = `
SELECT s.name, o.name, o.type FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id
 WHERE o.type IN ('P', 'FN', 'IF', 'TF') AND ($1::text IS NULL OR holdfast_tsql.is_like(o.name, $1::text, NULL))
   AND ($2::text IS NULL OR holdfast_tsql.is_like(s.name, $2::text, NULL))
 ORDER BY 1, 2`;

/** Rows of parameters as texts of T-SQL, one for each parameter and for the status of a procedure. */
export async function parameterRows(name: Value, owner: Value, request: RequestContext): Promise<string[]> {
  const { session, frame } = request;
  return session.transaction.withStatementSavepoint(async () => {
    // A call may have the number of the procedure behind its name, as sp_stored_procedures returns it.
    const found = await session.backend.query(routinesQuery, [name?.replace(/;[01]$/, "") ?? null, owner]);
    const rows: string[] = [];
    for (const [schema = "", routine = "", kind = ""] of found) {
      const object = session.context(frame).objectName([schema ?? "", routine ?? ""], 0);
      const isProcedure = kind?.trim() === "P";
      if (!isProcedure) await session.catalog.loadFunctions([object]);
      const definition = isProcedure
        ? (await session.catalog.procedure(object))?.definition
        : session.catalog.findFunction(object)?.definition;
      const row = (parameter: string, columnType: number, type: TsqlType, ordinal: number) =>
        `(${[schema, `${routine};${isProcedure ? 1 : 0}`, parameter].map(literal).join(", ")}, ${columnType}, ${sizes(type)}, ${ordinal})`;
      if (isProcedure) rows.push(row("@RETURN_VALUE", 5, { name: "int" }, 0));
      for (const [index, { name: parameter, type, isOutput }] of (definition?.parameters ?? []).entries())
        rows.push(row(parameter, isOutput ? 2 : 1, type, index + 1));
    }
    return rows;
  });
}

const literal = (text: string | null) => `N'${(text ?? "").replaceAll("'", "''")}'`;

/** Name of the type, bytes, precision and scale, as in sys.columns. */
function sizes({ name, length: characters, precision: digits, scale: fraction }: TsqlType): string {
  const bytes = typeof characters === "number" ? characters * (name.startsWith("n") ? 2 : 1) : -1;
  return [`'${name}'`, bytes, digits ?? 18, fraction ?? (name === "decimal" ? 0 : 7)].join(", ");
}

/** The columns of sp_sproc_columns for the rows. */
export function procedureColumnsQuery(rows: readonly string[]): string {
  // VALUES has at least one row.
  const values = rows.length === 0 ? [`(N'', N'', N'', 0, 'int', 0, 0, 0, -1)`] : rows;
  return `
SELECT DB_NAME() AS PROCEDURE_QUALIFIER, c.owner AS PROCEDURE_OWNER, c.routine AS PROCEDURE_NAME, c.name AS COLUMN_NAME,
  CAST(c.kind AS smallint) AS COLUMN_TYPE, ${code} AS DATA_TYPE, CAST(d.name AS nvarchar(128)) AS TYPE_NAME, CAST(${precision} AS int) AS [PRECISION],
  CAST(${length} AS int) AS [LENGTH], CAST(${scale} AS smallint) AS SCALE, CAST(d.radix AS smallint) AS RADIX,
  CAST(CASE c.kind WHEN 5 THEN 0 ELSE 1 END AS smallint) AS NULLABLE, CAST(NULL AS varchar(254)) AS REMARKS, CAST(NULL AS nvarchar(4000)) AS COLUMN_DEF,
  CAST(d.sql_type AS smallint) AS SQL_DATA_TYPE, CAST(d.sub AS smallint) AS SQL_DATETIME_SUB,
  CAST(CASE WHEN ${isText} THEN CASE c.max_length WHEN -1 THEN 0 ELSE c.max_length END END AS int) AS CHAR_OCTET_LENGTH, c.ordinal AS ORDINAL_POSITION,
  CAST(CASE c.kind WHEN 5 THEN 'NO' ELSE 'YES' END AS varchar(254)) AS IS_NULLABLE, CAST(d.tds AS tinyint) AS SS_DATA_TYPE
  FROM (VALUES ${values.join(", ")}) AS c (owner, routine, name, kind, type, max_length, [precision], scale, ordinal) JOIN ${odbcTypes} ON d.name = c.type
 WHERE c.ordinal >= 0 AND (@column_name IS NULL OR c.name LIKE @column_name)
 ORDER BY 1, 2, 3, c.ordinal`;
}
