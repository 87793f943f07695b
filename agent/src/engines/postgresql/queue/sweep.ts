import type { Session } from "../session.ts";
import { mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface Sweep {
  /** Number of messages that died or were deleted, and of other expired rows. */
  readonly swept: number;
  /** True if a limit was reached and more remains. */
  readonly hasMore: boolean;
}

const batch = 1000;

/** Statements that delete expired rows, up to a batch each. */
const expiredStatements = [
  `DELETE FROM ${schema}.dead_messages WHERE id IN (SELECT id FROM ${schema}.dead_messages
     WHERE died_at < now() - interval '14 days' ORDER BY died_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM ${schema}.tasks WHERE id IN (SELECT id FROM ${schema}.tasks
     WHERE created_at < now() - interval '24 hours' ORDER BY created_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM ${schema}.queues WHERE purged_at < now() - interval '30 days'`,
];

/** Runs one round of the agent's periodic sweep, for queues whose consumers do not call the claim function. */
export function sweep(session: Session): Promise<Sweep> {
  return mapRefusals(async () => {
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
    for (const statement of expiredStatements) {
      const [row] = await session.rows<{ n: string }>(
        `WITH removed AS (${statement} RETURNING 1) SELECT count(*) AS n FROM removed`,
      );
      swept += Number(row?.n);
      hasMore ||= Number(row?.n) === batch;
    }
    return { swept, hasMore };
  });
}
