import { postgresql } from "@holdfast/controller/insight/query-console/postgresql/console.ts";
import { createGuardThread } from "@holdfast/controller/insight/query-console/guard-thread.ts";
import { ms, percentile, print } from "../support/figures.ts";

const bytes = 4_096;

/** Time of the console's guard for one statement, including the hop to its thread and back. */
export async function measureGuard(rounds: number): Promise<void> {
  const sql = statement();
  const guard = createGuardThread(postgresql);
  try {
    await guard.check("SELECT 1");
    const took: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      const verdict = await guard.check(sql);
      took.push(performance.now() - startedAt);
      if ("refused" in verdict) throw new Error(verdict.refused);
      if (verdict.relations.length !== 5) throw new Error(`it names ${verdict.relations.join()}`);
    }
    const name = `guard, a statement of ${sql.length} bytes, p50 / p95`;
    print(name, `${ms(percentile(took, 0.5))} / ${ms(percentile(took, 0.95))}`, "<= 2 ms");
  } finally {
    await guard.close();
  }
}

/** A statement like a report's: columns, joins and conditions. */
function statement(): string {
  const columns = Array.from({ length: 60 }, (_, index) => `t${index % 5}.column_${index}`).join(", ");
  const from = `orders t0 JOIN items t1 ON t1.order_id = t0.id LEFT JOIN customers t2 ON t2.id = t0.customer_id
    JOIN parcels t3 ON t3.order_id = t0.id JOIN prices t4 ON t4.item_id = t1.id`;
  const start = `SELECT ${columns}, count(*) AS n, coalesce(max(t0.total), 0)::numeric AS most FROM ${from} WHERE true`;
  const end = " GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 100";
  const conditions: string[] = [];
  for (let index = 0; ; index += 1) {
    const next = ` AND (t${index % 5}.status IN ('open', 'x${index}') OR lower(t${(index + 1) % 5}.name) LIKE 'a%')`;
    if (`${start}${conditions.join("")}${next}${end}`.length > bytes) return `${start}${conditions.join("")}${end}`;
    conditions.push(next);
  }
}
