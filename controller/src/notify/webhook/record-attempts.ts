import type { EndedAttempt } from "./attempt-record.ts";
import type { Database } from "#kernel/history/database.ts";
import { millisecondsOf, timeOf } from "#kernel/history/times.ts";

/** Keeps what came of attempts and what comes next. Resolves to since when each endpoint fails, of those that do. */
export async function recordAttempts(
  database: Database,
  attempts: readonly EndedAttempt[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await database.query<{ webhook_id: string; failing_since: string }>(
    statement,
    columns.map((column) => attempts.map((attempt) => attempt[column])),
  );
  return new Map(rows.map((row) => [row.webhook_id, Number(row.failing_since)]));
}

/** In the order of the statement's parameters. */
const columns = [
  "id",
  "deliveryId",
  "webhookId",
  "eventId",
  "eventOccurredAt",
  "eventType",
  "attempt",
  "responseStatus",
  "errorMessage",
  "deliveredAt",
  "beganAt",
  "durationMs",
  "nextDueAt",
] as const satisfies readonly (keyof EndedAttempt)[];

/**
 * One statement for many attempts: their rows, what comes next of their deliveries, and the health of their endpoints, which is
 * written only where it changes.
 */
const statement = `
  with a as (
    select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::int[], $8::int[],
      $9::text[], $10::bigint[], $11::bigint[], $12::int[], $13::bigint[]) as a (
      id, delivery_id, webhook_id, event_id, event_occurred_at, event_type, attempt, response_status, error_message,
      delivered_at, began_at, duration_ms, next_due_at
    )
  ), kept as (
    insert into webhook_attempt (id, occurred_at, webhook_id, event_id, event_occurred_at, event_type, attempt,
      response_status, error_message, delivered_at, duration_ms)
    select id, ${timeOf("began_at")}, webhook_id, event_id, ${timeOf("event_occurred_at")}, event_type, attempt,
      response_status, error_message, ${timeOf("delivered_at")}, duration_ms
    from a on conflict do nothing
  ), over as (
    delete from webhook_delivery d using a where d.id = a.delivery_id and a.next_due_at is null
  ), again as (
    update webhook_delivery d set attempt = a.attempt + 1, due_at = ${timeOf("a.next_due_at")}
    from a where d.id = a.delivery_id and a.next_due_at is not null
  ), health as (
    select a.webhook_id, h.failing_since as before,
      case when bool_or(a.delivered_at is not null) then null
        else coalesce(h.failing_since, ${timeOf("min(a.began_at)")}) end as failing_since
    from a left join webhook_health h on h.webhook_id = a.webhook_id group by a.webhook_id, h.failing_since
  ), changed as (
    insert into webhook_health (webhook_id, failing_since)
    select webhook_id, failing_since from health where failing_since is distinct from before
    on conflict (webhook_id) do update set failing_since = excluded.failing_since
  )
  select webhook_id, ${millisecondsOf("failing_since")} as failing_since from health where failing_since is not null`;
