import { expect, test } from "vitest";
import { historyOf, remember } from "./query-history.ts";

const entry = (sql: string) => ({ sql, database: "", time: "2030-01-01T00:00:00Z", outcome: "1 row in 1 ms" });

test("the newest run of a statement is first, and at most 50 are retained for each service", () => {
  for (let number = 0; number < 60; number += 1) remember("a", entry(`SELECT ${number}`));
  remember("a", entry("SELECT 50"));
  const statements = historyOf("a").map(({ sql }) => sql);
  expect(statements.slice(0, 3)).toEqual(["SELECT 50", "SELECT 59", "SELECT 58"]);
  expect(statements).toHaveLength(50);
  expect(new Set(statements).size).toBe(50);
  expect(historyOf("b")).toEqual([]);
});
