import { afterAll, expect, test } from "vitest";
import { createGuardThread } from "../guard-thread.ts";
import { postgresql } from "./console.ts";

const guard = createGuardThread(postgresql);
afterAll(() => guard.close());

test("a statement that crashes or blocks the thread does not affect later statements", async () => {
  const harmful = [`SELECT ${"1 + ".repeat(15_000)}1`, `SELECT ${"NOT ".repeat(10_000)}true`];
  const answers = await Promise.all([...harmful, "SELECT 1", ...harmful, "SHOW work_mem"].map(guard.check));
  expect(answers.map((answer) => "refused" in answer)).toEqual([true, true, false, true, true, false]);
});

test("the audit text of a statement has no constants", async () => {
  const auditTextOf = async (sql: string) => {
    const verdict = await guard.check(sql);
    return "auditText" in verdict ? verdict.auditText : verdict.refused;
  };
  expect(await auditTextOf("SELECT a FROM t WHERE b = 'a secret' AND c = 12345.5")).toBe(
    "SELECT a\nFROM public.t\nWHERE\n  b = $1\n  AND c = $2",
  );
  expect(await auditTextOf("DESCRIBE  t")).toBe("DESCRIBE t");
  expect(await auditTextOf(`SELECT ${"a, ".repeat(1_000)} a FROM t`)).toHaveLength(1_000);
});

test.each([
  "SELECT E'planted', $$planted$$, $x$planted$x$, U&'planted', 'plan'\n'ted'",
  "SELECT * FROM t WHERE a IN ('x', 'planted') AND b BETWEEN 'planted' AND 'z' AND c LIKE 'planted%'",
  "SELECT interval '1 planted', interval '1' day, date 'planted', 'planted'::varchar(10), CAST('planted' AS text)",
  "SELECT a->>'planted', b @> '{\"planted\": 1}', c['planted'] FROM t ORDER BY d = 'planted' LIMIT 5",
  "WITH w AS (SELECT 'planted' AS a) SELECT coalesce(a, 'planted'), CASE a WHEN 'planted' THEN 1 END FROM w",
  "SELECT string_agg(a, 'planted' ORDER BY a) FILTER (WHERE a <> 'planted') OVER (PARTITION BY b || 'planted') FROM t",
  "EXPLAIN (FORMAT json) SELECT a FROM t WHERE b = 'planted' UNION ALL VALUES ('planted')",
  "SELECT * FROM json_to_recordset('planted') AS x(a int) JOIN generate_series(1, 'planted') ON a = 'planted'",
])("the audit text has no constant: %s", async (sql) => {
  const verdict = await guard.check(sql);
  if ("refused" in verdict) throw new Error(verdict.refused);
  expect(verdict.sql).toMatch(/plan/);
  expect(verdict.auditText).toMatch(/SELECT|EXPLAIN|WITH/);
  expect(verdict.auditText).not.toMatch(/plan|ted/);
});

test("only text printed from the tree is run", async () => {
  expect(await guard.check("select /* a */ x from t -- b")).toEqual({
    sql: "SELECT x\nFROM public.t",
    functions: [],
    types: [],
    qualified: [],
    relations: ['"public"."t"'],
    auditText: "SELECT x\nFROM public.t",
    // Positions of column and table in both texts.
    positions: new Map([
      [8, 16],
      [15, 23],
    ]),
    named: new Map([['"public"."t"', 23]]),
  });
});
