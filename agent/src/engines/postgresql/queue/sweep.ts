import type { Session } from "../session.ts";
import { refusing } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface Sweep {
  /** Messages that died or went away for good, and everything else that was too old. */
  readonly swept: number;
  /** True when a bound was reached: there is more to do. */
  readonly hasMore: boolean;
}

const batch = 1000;

/** Each removes what has outlived its time, at most so many rows. */
const outlived = [
  `DELETE FROM ${schema}.dead_messages WHERE id IN (SELECT id FROM ${schema}.dead_messages
     WHERE died_at < now() - interval '14 days' ORDER BY died_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM ${schema}.tasks WHERE id IN (SELECT id FROM ${schema}.tasks
     WHERE created_at < now() - interval '24 hours' ORDER BY created_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM ${schema}.queues WHERE purged_at < now() - interval '30 days'`,
];

/** What the agent does each minute: serves queues whose consumers claim by statements of their own, or not at all. */
export function sweep(session: Session): Promise<Sweep> {
  return refusing(async () => {
    const queues = await session.rows<{ name: string }>(
      `SELECT name FROM ${schema}.queues WHERE deleted_at IS NULL ORDER BY name`,
    );
    let swept = 0;
    let hasMore = false;
    for (const { name } of queues) {
      const [row] = await session.rows<{ n: number }>(`SELECT ${schema}.sweep($1, ${batch}) AS n`, [name]);
      swept += row?.n ?? 0;
      hasMore ||= row?.n === batch;
    }
    for (const statement of outlived) {
      const [row] = await session.rows<{ n: string }>(
        `WITH gone AS (${statement} RETURNING 1) SELECT count(*) AS n FROM gone`,
      );
      swept += Number(row?.n);
      hasMore ||= Number(row?.n) === batch;
    }
    return { swept, hasMore };
  });
}
