import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { expect, test } from "vitest";
import type { ConsoleMachine } from "./console-machine.ts";

/** Statements that need more memory than one of the console may use; the first fails at one allocation. */
export const memoryStatements: readonly string[] = [
  "SELECT length(repeat('x', 1000000000))",
  "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 2000)",
  "SELECT array_length(array_agg(n), 1) FROM (SELECT generate_series(1, 100000000) AS n) AS x",
  "SELECT json_agg(repeat('x', 1000)) FROM generate_series(1, 1000000)",
  "SELECT repeat('x', 50000000)",
  "SELECT length(lpad('', 200000000, 'x') || lpad('', 200000000, 'y'))",
  "EXPLAIN SELECT repeat('x', 500000000)",
];

const consoleSessions = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = 'holdfast_console'";

export function testMemoryLimit(consoleOf: () => ConsoleMachine, statements: readonly string[]): void {
  test.each(statements)("%s fails at the memory limit of one session, and the engine continues", async (sql) => {
    const { owner, execute, resultOf } = consoleOf();
    const started = async () => (await owner.query("SELECT pg_postmaster_start_time()::text AS at")).rows[0].at;
    const before = await started();
    const message = "The statement needs more memory than the 128 MiB that a console statement may use.";
    expect(await execute(sql, { timeoutMs: 60_000 })).toMatchObject({ refusal: { message } });
    await waitUntil("its session has ended", async () => (await owner.query(consoleSessions)).rows[0].count === 0);
    expect(await started()).toBe(before);
    expect((await resultOf("SELECT count(*) FROM orders")).rows).toEqual([["20"]]);
  });
}
