import { afterAll, expect, test } from "vitest";
import { createGuardThread } from "./guard-thread.ts";

const guard = createGuardThread();
afterAll(() => guard.close());

test("a statement that ends the thread, or keeps it busy, harms none that come after it", async () => {
  const harmful = [`SELECT ${"1 + ".repeat(15_000)}1`, `SELECT ${"NOT ".repeat(10_000)}true`];
  const answers = await Promise.all([...harmful, "SELECT 1", ...harmful, "SHOW work_mem"].map(guard.judge));
  expect(answers.map((answer) => "refused" in answer)).toEqual([true, true, false, true, true, false]);
});

test("what people see of a statement has no constants", async () => {
  const shown = async (sql: string) => {
    const judgement = await guard.judge(sql);
    return "shown" in judgement ? judgement.shown : judgement.refused;
  };
  expect(await shown("SELECT a FROM t WHERE b = 'a secret' AND c = 12345.5")).toBe(
    "SELECT a\nFROM public.t\nWHERE\n  b = $1\n  AND c = $2",
  );
  expect(await shown("DESCRIBE  t")).toBe("DESCRIBE t");
  expect(await shown(`SELECT ${"a, ".repeat(1_000)} a FROM t`)).toHaveLength(1_000);
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
])("no constant of it shows: %s", async (sql) => {
  const judgement = await guard.judge(sql);
  if ("refused" in judgement) throw new Error(judgement.refused);
  expect(judgement.sql).toMatch(/plan/);
  expect(judgement.shown).toMatch(/SELECT|EXPLAIN|WITH/);
  expect(judgement.shown).not.toMatch(/plan|ted/);
});

test("only what is printed from the tree is run", async () => {
  expect(await guard.judge("select /* a */ x from t -- b")).toEqual({
    sql: "SELECT x\nFROM public.t",
    functions: [],
    types: [],
    qualified: [],
    relations: ['"public"."t"'],
    shown: "SELECT x\nFROM public.t",
    // Where column and table stand in both texts.
    places: new Map([
      [8, 16],
      [15, 23],
    ]),
    named: new Map([['"public"."t"', 23]]),
  });
});
