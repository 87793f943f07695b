import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Feature, features } from "../parse/features.ts";
import { assessScript, findingsMax } from "./assess-script.ts";

/** Features that depend on names or on the sign-in, which no script shows. */
const invisible: readonly Feature[] = ["Windows sign-in", "* of a function"];

/** A script for each feature. */
// biome-ignore format: a table
const examples: Readonly<Partial<Record<Feature, string>>> = {
  "SELECT":                            "SELECT 1",
  "INSERT, UPDATE, DELETE":            "DELETE t",
  "MERGE":                             "MERGE t USING s ON t.a = s.a WHEN MATCHED THEN DELETE;",
  "TOP":                               "SELECT TOP 5 a FROM t",
  "OUTPUT":                            "DELETE t OUTPUT deleted.a",
  "APPLY":                             "SELECT * FROM t CROSS APPLY dbo.f(t.a) x",
  "common table expressions":          "WITH c AS (SELECT 1 AS a) SELECT * FROM c",
  "window functions":                  "SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t",
  "tables, indexes, views, sequences": "CREATE TABLE t (a int)",
  "IDENTITY":                          "CREATE TABLE t (a int IDENTITY)",
  "computed columns":                  "CREATE TABLE t (a int, b AS a + 1)",
  "temporary tables":                  "CREATE TABLE #t (a int)",
  "table variables":                   "DECLARE @t TABLE (a int)",
  "variables and control of flow":     "DECLARE @a int = 1; WHILE @a < 2 SET @a += 1",
  "TRY...CATCH":                       "BEGIN TRY SELECT 1 END TRY BEGIN CATCH THROW END CATCH",
  "transactions":                      "BEGIN TRAN; COMMIT",
  "SET options":                       "SET NOCOUNT ON",
  "procedures":                        "CREATE PROCEDURE p AS SELECT 1",
  "functions":                         "CREATE FUNCTION dbo.f() RETURNS int AS BEGIN RETURN 1 END",
  "triggers":                          "CREATE TRIGGER r ON t AFTER INSERT AS SET NOCOUNT ON",
  "cursors":                           "DECLARE c CURSOR FOR SELECT 1",
  "bulk load":                         "INSERT BULK t (a int)",
  "catalog views":                     "SELECT * FROM sys.tables",
  "dynamic SQL":                       "EXEC ('SELECT 1')",
  "GRANT and REVOKE":                  "GRANT SELECT ON t TO u",
  "hints":                             "SELECT * FROM t WITH (NOLOCK)",
  "storage options":                   "CREATE TABLE t (a int PRIMARY KEY WITH (FILLFACTOR = 80))",
  "collations":                        "CREATE TABLE t (a varchar(10) COLLATE Latin1_General_CS_AS)",
  "seven digits of seconds":           "CREATE TABLE t (a datetime2)",
  "xml":                               "CREATE TABLE t (a xml)",
  "sql_variant":                       "CREATE TABLE t (a sql_variant)",
  "linked servers":                    "SELECT * FROM srv.db.dbo.t",
  "OPENQUERY":                         "SELECT * FROM OPENQUERY(srv, 'SELECT 1')",
  "OPENROWSET":                        "SELECT * FROM OPENROWSET('a', 'b', 'c')",
  "OPENDATASOURCE":                    "SELECT * FROM OPENDATASOURCE('a', 'b').db.dbo.t",
  "OPENXML":                           "SELECT * FROM OPENXML(@a, '/')",
  "full-text search":                  "SELECT * FROM FREETEXTTABLE(t, a, 'x')",
  "distributed transactions":          "BEGIN DISTRIBUTED TRANSACTION",
  "CLR":                               "CREATE ASSEMBLY a FROM 'a.dll'",
  "change data capture":               "EXEC sys.sp_cdc_enable_db",
  "agent jobs":                        "EXEC msdb.dbo.sp_add_job @job_name = 'nightly'",
  "other databases":                   "SELECT * FROM sales.dbo.t",
  "CREATE DATABASE":                   "CREATE DATABASE sales",
  "other collations":                  "SELECT a FROM t ORDER BY a COLLATE Klingon_CI_AS",
  "collations of databases":           "CREATE DATABASE sales COLLATE Latin1_General_BIN",
  "FOR XML":                           "SELECT 1 AS a FOR XML PATH",
  "FOR JSON":                          "SELECT 1 AS a FOR JSON PATH",
  "FOR XML EXPLICIT":                  "SELECT 1 AS Tag, NULL AS Parent, a AS [t!1!a] FROM t FOR XML EXPLICIT",
  "PIVOT and UNPIVOT":                 "SELECT * FROM t PIVOT (SUM(a) FOR b IN ([x], [y])) AS p",
  "temporal queries":                  "SELECT * FROM t FOR SYSTEM_TIME ALL",
  "TOP ... PERCENT":                   "SELECT TOP 5 PERCENT a FROM t",
  "TOP with a join in a change":       "DELETE TOP (1) t FROM t JOIN s ON t.a = s.a",
  "running values in UPDATE":          "UPDATE t SET @a = @a + b",
  "SET @variable in MERGE":            "MERGE t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET @a = 1;",
  "OUTPUT deleted of MERGE":           "MERGE t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 1 OUTPUT deleted.a;",
  "OUTPUT of INSERT ... EXEC":         "INSERT t OUTPUT inserted.a EXEC p",
  "OUTPUT deleted without a key":      "UPDATE t SET a = 1 OUTPUT deleted.a FROM t JOIN s ON t.a = s.a",
  "cursor variables":                  "DECLARE @c CURSOR",
  "cursors for update":                "DECLARE c CURSOR FOR SELECT a FROM t FOR UPDATE",
  "options of modules":                "CREATE PROCEDURE p WITH ENCRYPTION AS SELECT 1",
  "permissions on other securables":   "GRANT SELECT ON SCHEMA::dbo TO u",
  "statements in functions and triggers": "CREATE FUNCTION dbo.f() RETURNS int AS BEGIN DELETE t; RETURN 1 END",
  "values of the session in modules":  "CREATE TRIGGER r ON t AFTER INSERT AS DECLARE @a int = SCOPE_IDENTITY()",
  "table-valued parameters of functions": "CREATE FUNCTION dbo.f(@t dbo.list READONLY) RETURNS int AS BEGIN RETURN 1 END",
  "storage of table types":            "CREATE TYPE dbo.list AS TABLE (a int) WITH (MEMORY_OPTIMIZED = ON)",
  "computed columns of table variables": "CREATE FUNCTION dbo.f() RETURNS @t TABLE (a int, b AS a + 1) AS BEGIN RETURN END",
  "global temporary tables":           "CREATE TABLE ##t (a int)",
  "built-in functions":                "SELECT SOUNDSLIKE('a')",
  "system procedures":                 "EXEC xp_cmdshell 'dir'",
  "rowversion":                        "CREATE TABLE t (a rowversion)",
  "spatial types":                     "CREATE TABLE t (a geography)",
  "hierarchyid":                       "CREATE TABLE t (a hierarchyid)",
  "user-defined types":                "CREATE TYPE dbo.code FROM varchar(10)",
  "synonyms":                          "CREATE SYNONYM a FOR dbo.b",
  "logins, users and roles":           "CREATE LOGIN a WITH PASSWORD = 'x'",
  "partitions":                        "CREATE PARTITION FUNCTION f (int) AS RANGE LEFT FOR VALUES (1)",
  "triggers of DDL and sign-in":       "CREATE TRIGGER r ON DATABASE FOR DROP_TABLE AS SELECT 1",
  "GOTO":                              "GOTO finish",
  "DENY":                              "DENY SELECT ON t TO u",
  "DBCC":                              "DBCC CHECKDB",
  "BACKUP and RESTORE":                "BACKUP DATABASE a TO DISK = 'x'",
  "BULK INSERT":                       "BULK INSERT t FROM 'x'",
  "server control":                    "SHUTDOWN",
  "other statements":                  "CREATE RULE r AS 1",
  "other syntax":                      "SELECT FROM WHERE",
};

const found = (script: string) => assessScript(script).findings.map(({ line, feature }) => [line, feature]);

describe("features of the table", () => {
  test.each([...features].filter(([name]) => !invisible.includes(name as Feature)))("%s is found", (name, row) => {
    const script = examples[name as Feature];
    expect(script, "add an example").toBeDefined();
    const { findings } = assessScript(`\n${script}`);
    expect(findings).toContainEqual(expect.objectContaining({ line: 2, feature: name, verdict: row.verdict }));
    // No example of a supported or limited feature has an error.
    if (row.verdict !== "unsupported") expect(findings.map(({ verdict }) => verdict)).not.toContain("unsupported");
  });
});

describe("scripts", () => {
  test("of a service with several databases may create and name them", () => {
    const script = "CREATE DATABASE sales\nGO\nUSE sales; SELECT * FROM stock.dbo.t; DROP DATABASE stock";
    const unsupported = (layoutMode: "single-db" | "multi-db") =>
      assessScript(script, layoutMode).findings.filter(({ verdict }) => verdict === "unsupported").length;
    expect([unsupported("single-db"), unsupported("multi-db")]).toEqual([3, 0]);
  });

  test("lines are those of the script, also after GO, comments and texts of several lines", () => {
    const script =
      "SELECT 'a\nb'\nGO\n/* \n */ DBCC CHECKDB\r\n  go -- next\nSELECT 1\n\nEXEC xp_cmdshell 'dir'\nGO 5\nKILL 5";
    expect(found(script)).toEqual([
      [1, "SELECT"],
      [5, "DBCC"],
      [9, "system procedures"],
      [11, "server control"],
    ]);
    expect(assessScript(script).statements).toBe(5);
  });

  test("each statement with an error is found, also in blocks and procedures", () => {
    const script = `CREATE PROCEDURE p AS
BEGIN
  IF 1 = 1
  BEGIN
    GOTO finish;
    BACKUP DATABASE a TO DISK = 'x'
  END
  ELSE
    SELECT a FROM OPENROWSET('a', 'b')
    WHERE a = 1
  DBCC CHECKDB
END`;
    expect(found(script)).toEqual([
      [1, "procedures"],
      [3, "variables and control of flow"],
      [5, "GOTO"],
      [6, "BACKUP and RESTORE"],
      [9, "OPENROWSET"],
      [11, "DBCC"],
    ]);
  });

  test("a procedure with a refused option is assessed further", () => {
    expect(found("CREATE PROCEDURE p WITH ENCRYPTION AS\nDBCC CHECKDB")).toEqual([
      [1, "options of modules"],
      [2, "DBCC"],
    ]);
  });

  test("the error of a statement is its advice", () => {
    const { findings } = assessScript("SELECT FROM t");
    expect(findings).toEqual([
      { line: 1, feature: "other syntax", verdict: "unsupported", advice: "Incorrect syntax near the keyword 'FROM'." },
    ]);
  });

  test("names that every object inherits are no features, functions or procedures", () => {
    expect(found("SELECT constructor(1)\nEXEC toString\nCREATE TABLE constructor (valueOf int)")).toEqual([
      [1, "SELECT"],
      [1, "built-in functions"],
      [3, "tables, indexes, views, sequences"],
    ]);
  });

  test("an empty script has no statements", () => {
    expect(assessScript("\nGO\n-- nothing\nGO\n")).toEqual({ statements: 0, findings: [], truncated: false });
  });

  test("the number of findings is bounded", () => {
    const { statements, findings, truncated } = assessScript("GOTO a\n".repeat(findingsMax + 1));
    expect([statements, findings.length, truncated]).toEqual([findingsMax + 1, findingsMax, true]);
  });

  test.each([
    "(",
    "BEGIN ",
    "SELECT ((",
    "x ",
    "GOTO\n",
    "CASE WHEN ",
    "[",
    "END\n",
    "IF 1=1 ",
    "SELECT a FROM (",
    "/*",
  ])("256 KiB of %j do not stop it", (part) => {
    const { findings } = assessScript(part.repeat(Math.floor(262_144 / part.length)));
    expect(findings.length).toBeLessThanOrEqual(findingsMax);
  });

  test("a chain of operators as long as a script has no depth", () => {
    expect(found(`SELECT 1${"+1".repeat(131_000)}`)).toEqual([[1, "SELECT"]]);
  });

  test("any text has an assessment", () => {
    const words = fc.constantFrom(
      ..."SELECT FROM ( ) BEGIN END ; , GO\n \n TRY CATCH IF ELSE CREATE PROCEDURE AS @a = 1 'x' WITH".split(" "),
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(words).map((list) => list.join(" ")),
    );
    fc.assert(
      fc.property(text, (script) => {
        const lines = script.split("\n").length;
        for (const { line } of assessScript(script).findings) {
          expect(line).toBeGreaterThan(0);
          expect(line).toBeLessThanOrEqual(lines);
        }
      }),
      { numRuns: 300 },
    );
  });
});
