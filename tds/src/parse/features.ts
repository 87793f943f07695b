import { SqlError } from "../run/sql-error.ts";

/** How the front end serves a feature of T-SQL. `limited`: with the differences that its advice names. */
export type Verdict = "supported" | "limited" | "unsupported";

interface FeatureRow {
  readonly verdict: Verdict;
  /** Sentence for users: the limits of the feature, or what to use in its place. Empty if it has none. */
  readonly advice: string;
  /** Number of the error of an unsupported feature. */
  readonly number?: number;
}

/**
 * The features of T-SQL that errors, assessments and the page docs/reference/tsql-features.md name. An unsupported one
 * has the number that SQL Server (or Azure SQL Database: 40510 to 40527) uses where it is missing, turned off or not
 * installed. Drivers retry none of these numbers.
 */
// biome-ignore format: a table
const rows = {
  "SELECT":                            { verdict: "supported",   advice: "" },
  "INSERT, UPDATE, DELETE":            { verdict: "supported",   advice: "" },
  "MERGE":                             { verdict: "supported",   advice: "" },
  "TOP":                               { verdict: "supported",   advice: "" },
  "OUTPUT":                            { verdict: "supported",   advice: "" },
  "APPLY":                             { verdict: "supported",   advice: "" },
  "common table expressions":          { verdict: "supported",   advice: "" },
  "window functions":                  { verdict: "supported",   advice: "" },
  "tables, indexes, views, sequences": { verdict: "supported",   advice: "" },
  "IDENTITY":                          { verdict: "supported",   advice: "" },
  "computed columns":                  { verdict: "supported",   advice: "They are always stored." },
  "temporary tables":                  { verdict: "supported",   advice: "" },
  "table variables":                   { verdict: "supported",   advice: "" },
  "variables and control of flow":     { verdict: "supported",   advice: "" },
  "TRY...CATCH":                       { verdict: "supported",   advice: "" },
  "transactions":                      { verdict: "supported",   advice: "" },
  "SET options":                       { verdict: "supported",   advice: "" },
  "procedures":                        { verdict: "supported",   advice: "Their statements run with the privileges of the caller." },
  "functions":                         { verdict: "supported",   advice: "Their statements run with the privileges of the caller." },
  "triggers":                          { verdict: "supported",   advice: "Changes on port 5432 fire them too; one whose changes fire itself does not run again." },

  "user-defined types":                { verdict: "limited",     advice: "Alias types and table types; DROP TYPE does not look for procedures that use the type." },
  "cursors":                           { verdict: "limited",     advice: "A cursor of any kind has the rows at OPEN, and a rollback of its transaction closes it." },
  "bulk load":                         { verdict: "limited",     advice: "A load is one statement, checks constraints and fires triggers." },
  "catalog views":                     { verdict: "limited",     advice: "sys has the views and columns that drivers and tools read." },
  "dynamic SQL":                       { verdict: "limited",     advice: "The text is known only when it runs, so it is not assessed." },
  "GRANT and REVOKE":                  { verdict: "limited",     advice: "Permissions on tables, views, procedures and functions." },
  "hints":                             { verdict: "limited",     advice: "Hints have no effect: PostgreSQL plans the query, and readers never wait for writers." },
  "storage options":                   { verdict: "limited",     advice: "Filegroups, fill factors and compression have no effect." },
  "collations":                        { verdict: "limited",     advice: "Those of sys.fn_helpcollations(). LIKE, CHARINDEX and REPLACE compare character by character." },
  "seven digits of seconds":           { verdict: "limited",     advice: "time, datetime2 and datetimeoffset store six digits of the fraction of seconds." },
  "FOR XML":                           { verdict: "limited",     advice: "RAW, AUTO and PATH with ROOT, ELEMENTS, XSINIL and TYPE; the text is one row of any length." },
  "FOR JSON":                          { verdict: "limited",     advice: "The text is one row, and numbers of type float have no exponent." },
  "xml":                               { verdict: "limited",     advice: "A column stores and returns the text; methods such as value() are unsupported." },
  "sql_variant":                       { verdict: "limited",     advice: "DISTINCT, GROUP BY and indexes compare the base types too: 1 of int is not 1 of bigint there." },

  "linked servers":                    { verdict: "unsupported", number: 7202,  advice: "Linked servers are not supported; remove the server part of the name." },
  "OPENQUERY":                         { verdict: "unsupported", number: 7202,  advice: "OPENQUERY is not supported, since there are no linked servers." },
  "OPENROWSET":                        { verdict: "unsupported", number: 15281, advice: "OPENROWSET is not supported; load the data with a client." },
  "OPENDATASOURCE":                    { verdict: "unsupported", number: 15281, advice: "OPENDATASOURCE is not supported; load the data with a client." },
  "OPENXML":                           { verdict: "unsupported", number: 40514, advice: "OPENXML is not supported; read the XML in the application." },
  "full-text search":                  { verdict: "unsupported", number: 7601,  advice: "Full-text search is not supported; use PostgreSQL's on port 5432." },
  "distributed transactions":          { verdict: "unsupported", number: 8501,  advice: "Distributed transactions are not supported; use a local one." },
  "CLR":                               { verdict: "unsupported", number: 10342, advice: "CLR assemblies are not supported; write the module in T-SQL." },
  "change data capture":               { verdict: "unsupported", number: 22988, advice: "Change data capture is not supported; use a replication slot on port 5432." },
  "agent jobs":                        { verdict: "unsupported", number: 22022, advice: "Agent jobs are not supported; schedule work outside of the database." },
  "Windows sign-in":                   { verdict: "unsupported", number: 18452, advice: "Sign-in with Windows or Entra is not supported; use a SQL login with a password." },
  "other databases":                   { verdict: "unsupported", number: 911,   advice: "A service of the layout single-db has one database, defaultdb; use schemas of it, or a service of the layout multi-db." },
  "CREATE DATABASE":                   { verdict: "unsupported", number: 262,   advice: "A service of the layout single-db has one database, defaultdb; services of the layout multi-db create others." },
  "other collations":                  { verdict: "unsupported", number: 448,   advice: "The collation is not supported; use one of SQL_Latin1_General_CP1, Latin1_General and Latin1_General_100." },
  "collations of databases":           { verdict: "unsupported", number: 40517, advice: "COLLATE of a database is not supported: all databases have the collation of the service." },
  "FOR XML EXPLICIT":                  { verdict: "unsupported", number: 6819,  advice: "FOR XML EXPLICIT is not supported; use PATH." },
  "PIVOT and UNPIVOT":                 { verdict: "unsupported", number: 40517, advice: "PIVOT and UNPIVOT are not supported; use aggregates over CASE, or CROSS APPLY of VALUES." },
  "temporal queries":                  { verdict: "unsupported", number: 40517, advice: "FOR SYSTEM_TIME is not supported; keep the history in a table by a trigger." },
  "TOP ... PERCENT":                   { verdict: "unsupported", number: 40517, advice: "TOP ... PERCENT is not supported; compute the count first." },
  "TOP with a join in a change":       { verdict: "unsupported", number: 40517, advice: "TOP with a join in UPDATE or DELETE is not supported; select the keys in a subquery." },
  "running values in UPDATE":          { verdict: "unsupported", number: 40517, advice: "SET @variable in UPDATE cannot read the variable, a column that the statement changes, or other tables; use a window function." },
  "SET @variable in MERGE":            { verdict: "unsupported", number: 40517, advice: "SET @variable in MERGE is not supported; use OUTPUT." },
  "OUTPUT deleted of MERGE":           { verdict: "unsupported", number: 40517, advice: "OUTPUT deleted.* of a MERGE that updates is not supported; use separate statements." },
  "OUTPUT of INSERT ... EXEC":         { verdict: "unsupported", number: 40517, advice: "OUTPUT of INSERT ... EXEC is not supported; read the rows after the statement." },
  "OUTPUT deleted without a key":      { verdict: "unsupported", number: 40517, advice: "OUTPUT deleted.* of an UPDATE without a primary key or with a join is not supported." },
  "* of a function":                   { verdict: "unsupported", number: 40517, advice: "* of a function is not supported; name the columns." },
  "cursor variables":                  { verdict: "unsupported", number: 40517, advice: "Cursor variables are not supported; use the name of a cursor." },
  "cursors for update":                { verdict: "unsupported", number: 40517, advice: "FOR UPDATE of a cursor is not supported; update by the key of the row." },
  "options of modules":                { verdict: "unsupported", number: 40517, advice: "This option of a procedure, function or trigger is not supported." },
  "permissions on other securables":   { verdict: "unsupported", number: 40517, advice: "Permissions on schemas and databases are not supported; grant them on objects, or use roles of the service." },
  "statements in functions and triggers": { verdict: "unsupported", number: 40517, advice: "Functions and triggers cannot contain this statement; use a procedure." },
  "values of the session in modules":  { verdict: "unsupported", number: 40517, advice: "Functions and triggers cannot read this value of the session." },
  "table-valued parameters of functions": { verdict: "unsupported", number: 40517, advice: "A function has no table-valued parameters; use a procedure, or pass JSON." },
  "storage of table types":            { verdict: "unsupported", number: 40517, advice: "MEMORY_OPTIMIZED and other options of table types are not supported; remove WITH." },
  "computed columns of table variables": { verdict: "unsupported", number: 40517, advice: "A table variable that a function returns has no computed columns." },
  "global temporary tables":           { verdict: "unsupported", number: 40516, advice: "Global temporary tables are not supported in this version; use a local one (#name)." },
  "built-in functions":                { verdict: "unsupported", number: 195,   advice: "This built-in function is not supported in this version." },
  "system procedures":                 { verdict: "unsupported", number: 2812,  advice: "This system procedure is not supported in this version." },
  "rowversion":                        { verdict: "unsupported", number: 40524, advice: "rowversion columns are not supported; use a trigger that increments a bigint." },
  "spatial types":                     { verdict: "unsupported", number: 40524, advice: "geometry and geography are not supported; store coordinates or well-known text." },
  "hierarchyid":                       { verdict: "unsupported", number: 40524, advice: "hierarchyid is not supported; store the path as a text." },
  "synonyms":                          { verdict: "unsupported", number: 40510, advice: "Synonyms are not supported; use a view." },
  "logins, users and roles":           { verdict: "unsupported", number: 40510, advice: "Users are created by the API of the service." },
  "partitions":                        { verdict: "unsupported", number: 40510, advice: "Partition functions and schemes are not supported; use partitions of PostgreSQL on port 5432." },
  "triggers of DDL and sign-in":       { verdict: "unsupported", number: 40510, advice: "Triggers of DDL and sign-in are not supported." },
  "GOTO":                              { verdict: "unsupported", number: 40510, advice: "GOTO is not supported; use WHILE with BREAK, or RETURN." },
  "DENY":                              { verdict: "unsupported", number: 40510, advice: "DENY is not supported; revoke the permission." },
  "DBCC":                              { verdict: "unsupported", number: 40510, advice: "DBCC is not supported; health checks and metrics of the service replace it." },
  "BACKUP and RESTORE":                { verdict: "unsupported", number: 40510, advice: "BACKUP and RESTORE are not supported; use the backups of the service." },
  "BULK INSERT":                       { verdict: "unsupported", number: 40510, advice: "BULK INSERT reads files of the server; load the data with a client." },
  "server control":                    { verdict: "unsupported", number: 40510, advice: "Statements that control the server are not supported; the platform does." },
  "other statements":                  { verdict: "unsupported", number: 40510, advice: "This statement is not supported in this version." },
  "other syntax":                      { verdict: "unsupported", number: 102,   advice: "The statement has a syntax error, or syntax that is not supported." },
} as const satisfies Readonly<Record<string, FeatureRow>>;

export type Feature = keyof typeof rows;
/** Features whose use is an error. */
export type RefusedFeature = { [F in Feature]: (typeof rows)[F]["verdict"] extends "unsupported" ? F : never }[Feature];

/** The table, by the names of its features. */
export const features: ReadonlyMap<string, FeatureRow> = new Map(Object.entries<FeatureRow>(rows));

/** Error for the use of an unsupported feature; `detail` names the part of the statement. */
export function refuse(feature: RefusedFeature, line: number, detail?: string): SqlError {
  const { number, advice } = rows[feature];
  const message = detail === undefined ? advice : `${advice} (${detail})`;
  return new SqlError(number, message, { severity: 16, line, feature });
}

/** The feature that the error refuses; undefined for other errors. Syntax errors count as one feature. */
export function refusedFeature({ feature, number }: SqlError): Feature | undefined {
  if (feature !== undefined && features.has(feature)) return feature as Feature;
  return number === 102 || number === 156 ? "other syntax" : undefined;
}
