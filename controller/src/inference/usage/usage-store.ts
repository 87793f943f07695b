import type { Database } from "#kernel/history/database.ts";

/** The usage of a model by a key in one hour. */
export interface UsageRow {
  readonly hourMs: number;
  readonly organizationId: string;
  readonly keyId: string;
  /** Model without the provider's prefix. */
  readonly model: string;
  readonly provider: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly costMicrocents: number;
  readonly estimatedRequests: number;
}

export interface UsageSum {
  /** `provider/model`, or the id of the key. */
  readonly group: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly costMicrocents: number;
  readonly estimatedRequests: number;
}

/** Usage of models, in the history. */
export interface UsageStore {
  /** Adds the rows of a batch; a repeated batch changes nothing. */
  add(processId: string, batch: number, rows: readonly UsageRow[]): Promise<void>;
  /** Sums of the organization's hours in [from, to), the most expensive groups first, and the sum of all groups. */
  sum(
    organizationId: string,
    by: "model" | "key",
    from: number,
    to: number,
    limit: number,
  ): Promise<{ readonly items: UsageSum[]; readonly total: Omit<UsageSum, "group"> }>;
  /** Deletes usage older than 25 months, and usage of deleted organizations. */
  retainOnly(organizationIds: readonly string[], now: number): Promise<void>;
}

interface SumRow {
  readonly group: string;
  readonly requests: string;
  readonly prompt: string;
  readonly completion: string;
  readonly cost: string;
  readonly estimated: string;
}

const sums = `sum(requests)::text as requests, sum(prompt_tokens)::text as prompt, sum(completion_tokens)::text as completion,
  sum(cost_microcents)::text as cost, sum(estimated_requests)::text as estimated`;
const retentionMs = 25 * 31 * 86_400_000;

export function createUsageStore(sql: () => Database): UsageStore {
  return {
    async add(processId, batch, rows) {
      // One statement, so that the batch is recorded together with its rows.
      await sql().query(
        `with added as (
           insert into inference_batch (process_id, batch) values ($1, $2) on conflict do nothing returning batch),
         rows as (
           select r.* from jsonb_to_recordset($3::jsonb) as r (hour timestamptz, organization_id text, key_id text, model text,
             provider text, requests bigint, prompt_tokens bigint, completion_tokens bigint, cost_microcents bigint,
             estimated_requests bigint), added)
         insert into inference_usage as u select * from rows
         on conflict (hour, organization_id, key_id, model, provider) do update set
           requests = u.requests + excluded.requests,
           prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
           completion_tokens = u.completion_tokens + excluded.completion_tokens,
           cost_microcents = u.cost_microcents + excluded.cost_microcents,
           estimated_requests = u.estimated_requests + excluded.estimated_requests`,
        [
          processId,
          batch,
          JSON.stringify(
            rows.map((row) => ({
              hour: new Date(row.hourMs).toISOString(),
              organization_id: row.organizationId,
              key_id: row.keyId,
              model: row.model,
              provider: row.provider,
              requests: row.requests,
              prompt_tokens: row.promptTokens,
              completion_tokens: row.completionTokens,
              cost_microcents: row.costMicrocents,
              estimated_requests: row.estimatedRequests,
            })),
          ),
        ],
      );
    },

    async sum(organizationId, by, from, to, limit) {
      const group = by === "model" ? "provider || '/' || model" : "key_id";
      const where = "where organization_id = $1 and hour >= $2 and hour < $3";
      const values = [organizationId, new Date(from).toISOString(), new Date(to).toISOString()];
      const [rows, totals] = await Promise.all([
        sql().read<SumRow & Record<string, unknown>>(
          `select ${group} as "group", ${sums} from inference_usage ${where}
           group by 1 order by sum(cost_microcents) desc, 1 limit ${limit}`,
          values,
        ),
        sql().read<SumRow & Record<string, unknown>>(
          `select '' as "group", ${sums} from inference_usage ${where}`,
          values,
        ),
      ]);
      const [total] = totals;
      return { items: rows.map(sumOf), total: sumOf(total as SumRow) };
    },

    async retainOnly(organizationIds, now) {
      await sql().query("delete from inference_usage where hour < $1", [new Date(now - retentionMs).toISOString()]);
      await sql().query("delete from inference_usage where organization_id <> all($1)", [organizationIds]);
      // A process sends its batches in order, so a repeat concerns only the newest ones.
      await sql().query(
        `delete from inference_batch b using (select process_id, max(batch) as newest from inference_batch group by 1) m
         where b.process_id = m.process_id and b.batch < m.newest - 100`,
      );
    },
  };
}

function sumOf({ group, ...row }: SumRow): UsageSum {
  return {
    group,
    requests: Number(row.requests ?? 0),
    promptTokens: Number(row.prompt ?? 0),
    completionTokens: Number(row.completion ?? 0),
    costMicrocents: Number(row.cost ?? 0),
    estimatedRequests: Number(row.estimated ?? 0),
  };
}
