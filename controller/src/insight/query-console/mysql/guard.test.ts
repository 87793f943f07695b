import { afterAll, expect, test } from "vitest";
import { createGuardThread } from "../guard-thread.ts";
import { mysql } from "./console.ts";
import { checkStatement } from "./guard.ts";

const guard = createGuardThread(mysql);
afterAll(() => guard.close());

const sqlOf = (sql: string) => {
  const verdict = checkStatement(sql);
  return "refused" in verdict ? `refused: ${verdict.refused}` : verdict.sql;
};

test.each([
  ["SELECT 1", "SELECT 1"],
  ["select /* a */ x -- b\nfrom t # c", "select x from t"],
  ["SELECT a--1 FROM t", "SELECT a--1 FROM t"],
  ["SELECT 'a;--', \"#'\", `; ``x` FROM `t`", "SELECT 'a;--', \"#'\", `; ``x` FROM `t`"],
  [String.raw`SELECT 'it''s \' ;', _utf8mb4'x', x'41'`, String.raw`SELECT 'it''s \' ;', _utf8mb4'x', x'41'`],
  [
    "SELECT COUNT(*), sum(DISTINCT a) FROM b.c d JOIN (SELECT 1) e USING (f) WHERE a IN (1) AND NOT (b) GROUP BY (a)",
    undefined,
  ],
  ["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n", undefined],
  [
    "SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b), CAST(a AS DECIMAL(10, 2)), CAST(a AS DATETIME(6)), a->>'$.b' FROM t",
    undefined,
  ],
  ["SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$')) AS j FORCE INDEX (x)", undefined],
  ["SELECT a = ANY (SELECT 1), MATCH(a) AGAINST ('x'), SUBSTRING(a FROM 1 FOR 2) FROM t LIMIT 1", undefined],
  ["(SELECT 1) UNION (SELECT 2)", undefined],
  ["VALUES ROW(1, 2)", undefined],
  ["TABLE t", undefined],
  ["EXPLAIN SELECT 1", "EXPLAIN SELECT 1"],
  ["explain format=tree select 1", "EXPLAIN FORMAT = TREE select 1"],
  ["DESCRIBE shop.`or``ders`", "SHOW COLUMNS FROM `shop`.`or``ders`"],
  ["show full columns from t like 'a%'", "SHOW FULL COLUMNS FROM `t` LIKE 'a%'"],
  ["SHOW CREATE TABLE shop.t", "SHOW CREATE TABLE `shop`.`t`"],
  ["SHOW TABLES", "SHOW TABLES"],
])("%s may run", (sql, printed = sql) => {
  expect(sqlOf(sql)).toBe(printed);
});

test.each([
  ["SELECT 1; SELECT 2", 9],
  ["SELECT 1;", 9],
  ["SELECT 'ä', 1;", 14],
  ["SELECT /*! SLEEP(1) */ 1", 8],
  ["SELECT /*+ SET_VAR(sql_mode = '') */ 1", 8],
  ["SELECT /*!50000 1 */", 8],
  ["SELECT 1 /* open", 10],
  ["SELECT 'open", 8],
  [String.raw`SELECT 'open\'`, 8],
  ["SELECT `open", 8],
  ["SELECT @a", 8],
  ["SELECT @@version", 8],
  ["SELECT a := 1", 10],
  ["SELECT ?", 8],
  ["SELECT 1 INTO OUTFILE '/x'", 10],
  ["SELECT 1 INTO x", 10],
  ["TABLE t INTO DUMPFILE '/x'", 9],
  ["SELECT 1 FOR UPDATE", 10],
  ["SELECT 1 FOR/**/SHARE", 10],
  ["SELECT a FROM t LOCK IN SHARE MODE", 17],
  ["SELECT SLEEP(1)", 8],
  ["SELECT benchmark(1, 1)", 8],
  ["SELECT LOAD_FILE('/etc/passwd')", 8],
  ["SELECT GET_LOCK('a', 1)", 8],
  ["SELECT IS_FREE_LOCK('a')", 8],
  ["SELECT WAIT_FOR_EXECUTED_GTID_SET('a', 1)", 8],
  ["SELECT LAST_INSERT_ID(5)", 8],
  ["SELECT of_users()", 8],
  ["SELECT shop.now()", 13],
  ["SELECT `shop` . `f`()", 17],
  ["SELECT `sleep`(1)", 8],
  ["SELECT abs (1)", 8],
  ["SELECT abs/**/(1)", 8],
  ["SELECT sleep\u00a0(1)", 8],
  ["SELECT ran\u212a(1)", 8],
  ["SELECT any(1)", 8],
  ["SELECT a = any(1)", 12],
  ["SELECT columns(1)", 8],
  ["SELECT datetime(1)", 8],
  ["SELECT against(1)", 8],
  ["SELECT with_(1)", 8],
  ["WITH x AS (SELECT 1) DELETE FROM t", 22],
  ["WITH x AS (SELECT 1) UPDATE t SET a = 1", 22],
  ["EXPLAIN ANALYZE SELECT 1", 9],
  ["EXPLAIN FORMAT=JSON INTO @a SELECT 1", 26],
  ["EXPLAIN DELETE FROM t", 9],
  ["EXPLAIN FOR CONNECTION 1", 9],
  ["SHOW GRANTS", 6],
  ["SHOW BINARY LOGS", 6],
  ["SHOW TABLES WHERE SLEEP(1)", 13],
  ["SHOW CREATE PROCEDURE p", 6],
  ["DESCRIBE t x", 12],
  ["INSERT INTO t VALUES (1)", 1],
  ["SET GLOBAL a = 1", 1],
  ["CALL p()", 1],
  ["DO SLEEP(1)", 1],
  ["HANDLER t OPEN", 1],
  ["", 0],
  ["SELECT (1", 0],
  [`SELECT ${"(".repeat(101)}1${")".repeat(101)}`, 108],
])("%s is refused", (sql, position) => {
  expect(checkStatement(sql)).toMatchObject({ refused: expect.any(String), position });
});

test("the audit text has no constants, and names are listed as they would be those of views", async () => {
  const verdict = await guard.check("SELECT a, 'planted', 5e1 FROM shop.`v 1` /* planted */ WHERE b = \"planted\"");
  expect(verdict).toMatchObject({
    auditText: "SELECT a, ?, ? FROM shop.`v 1` WHERE b = ?",
    relations: expect.arrayContaining(["`shop`.`v 1`", "`a`"]),
  });
});

test("a statement is checked in time however large it is", async () => {
  const answers = await Promise.all(
    [
      `SELECT ${"1 + ".repeat(15_000)}1`,
      `SELECT ${"/*x".repeat(20_000)}`,
      `SELECT ${"'a\\".repeat(20_000)}`,
      "SELECT 1",
    ].map(guard.check),
  );
  expect(answers.map((answer) => "refused" in answer)).toEqual([true, true, true, false]);
});
