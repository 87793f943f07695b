import { parseDataType } from "../parse/data-type.ts";
import { tokenize } from "../parse/lexer.ts";
import { parseQuery } from "../parse/queries.ts";
import { TokenStream } from "../parse/token-stream.ts";
import { findCollation } from "../types/collation.ts";
import { type TsqlType, typeText } from "../types/tsql-type.ts";

/*
 * A procedure of T-SQL is a procedure of PostgreSQL without parameters, whose source contains the text as a constant:
 * privileges, owner, schema and backups are those of PostgreSQL. The front end runs the text; a client of PostgreSQL
 * that calls the procedure gets an error.
 */
const head = "-- Text of T-SQL, run by the front end.\nDECLARE\n  module_text constant text := '";
const tail = `';
BEGIN
  RAISE EXCEPTION 'This procedure is in T-SQL: call it by a client of port 1433.'
    USING ERRCODE = 'feature_not_supported';
END`;

/** Source of the procedure of PostgreSQL for a text of T-SQL. */
export function moduleSource(text: string): string {
  return `${head}${text.replaceAll("'", "''")}${tail}`;
}

/** A constant of SQL, for text without backslashes. */
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** SQL condition on pg_proc: the source contains a text of T-SQL. */
export const isModule = `p.prokind = 'p' AND p.pronargs = 0 AND starts_with(p.prosrc, ${literal(head)})
   AND right(p.prosrc, ${tail.length}) = ${literal(tail)}`;

/** SQL expression on pg_proc: the text of T-SQL. */
export const moduleText = `replace(substr(p.prosrc, ${head.length + 1}, length(p.prosrc) - ${head.length + tail.length}), '''''', '''')`;

/*
 * A function or trigger of T-SQL is a function of PostgreSQL in PL/pgSQL or SQL. The first line of its source is a
 * comment with a JSON object that has its text.
 */
const header = "-- T-SQL: ";

export type ModuleKind = "FN" | "IF" | "TF" | "TR";

export interface ModuleColumn {
  readonly name: string;
  readonly type: TsqlType;
  readonly isNullable: boolean;
}

/** A function or trigger as it is stored. */
export interface StoredModule {
  readonly kind: ModuleKind;
  readonly text: string;
  /** Columns of the rows of a function that returns a table. */
  readonly columns?: readonly ModuleColumn[];
}

/** The first line of the source of a module, and its line end. */
export function moduleHeader({ kind, text, columns }: StoredModule): string {
  const list = columns?.map(({ name, type, isNullable }) => {
    return { name, type: typeText(type), isNullable, ...(type.collation && { collation: type.collation }) };
  });
  return `${header}${JSON.stringify({ kind, text, ...(list && { columns: list }) })}\n`;
}

/** Reads the first line of a source; undefined if it is that of no module, or not as this front end writes it. */
export function parseModuleHeader(source: string): StoredModule | undefined {
  if (!source.startsWith(header)) return undefined;
  try {
    const { kind, text, columns } = JSON.parse(source.slice(header.length, source.indexOf("\n"))) as {
      kind: ModuleKind;
      text: string;
      columns?: { name: string; type: string; isNullable: boolean; collation?: string }[];
    };
    if (!["FN", "IF", "TF", "TR"].includes(kind)) return undefined;
    // Types are parsed, not taken: whoever may create functions could write any text there.
    const list = columns?.map(({ name, type, isNullable, collation }) => {
      const parsed = parseDataType(new TokenStream(tokenize(type), parseQuery));
      const found = collation === undefined ? undefined : findCollation(collation);
      return { name, type: found === undefined ? parsed : { ...parsed, collation: found.name }, isNullable };
    });
    return { kind, text, ...(list && { columns: list }) };
  } catch {
    return undefined;
  }
}

/** SQL condition on pg_proc: the source may be that of a function or trigger of T-SQL. It is cheap. */
export const isCompiled = `starts_with(p.prosrc, ${literal(header)})`;

const headerLine = `substr(split_part(p.prosrc, E'\\n', 1), ${header.length + 1})`;

/** SQL expression on pg_proc: the JSON object of a function or trigger of T-SQL; NULL for other routines. */
export const compiledModule = `(CASE WHEN ${isCompiled} THEN
   CASE WHEN pg_catalog.pg_input_is_valid(${headerLine}, 'jsonb') THEN ${headerLine}::jsonb END END)`;
