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
