import type { Database } from "#kernel/history/database.ts";
import type { PlannedRows } from "#kernel/history/records.ts";
import { millisecondsOf, timeOf } from "#kernel/history/sql-timestamps.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";

/** One attempt of a delivery, with the fields that the API lists. Times are milliseconds since 1970. */
export interface AttemptRecord {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly attempt: number;
  readonly responseStatus: number | null;
  readonly errorMessage: string | null;
  readonly deliveredAt: number | null;
  readonly beganAt: number;
  readonly durationMs: number;
}

/** The outcome of an attempt, and the time of the next one. */
export interface EndedAttempt extends AttemptRecord {
  readonly deliveryId: string;
  readonly eventOccurredAt: number;
  /** Time of the next attempt in milliseconds since 1970; null if the delivery is complete. */
  readonly nextDueAt: number | null;
}

/**
 * The store of deliveries: waiting deliveries, attempts, and the health of endpoints, in the history. Statements are
 * ordered so that a crash can repeat a delivery and never loses one.
 */
export interface Deliveries {
  /** Turns requested redeliveries into deliveries that are due at this time; resolves to their endpoints. */
  takeRepeats(dueAt: number): Promise<string[]>;
  /**
   * The first deliveries of each endpoint within its capacity, ordered by due time, including deliveries that are not
   * due yet. `except`: ids of deliveries in flight.
   */
  next(endpoints: readonly EndpointCapacity[], except: readonly string[]): Promise<WaitingDelivery[]>;
  /**
   * Records attempts and schedules the next ones. Resolves to the failing endpoints, each with the time since which it
   * fails.
   */
  record(attempts: readonly EndedAttempt[]): Promise<ReadonlyMap<string, number>>;
  /** Deletes the deliveries and health of all endpoints that are not listed. */
  retainOnly(webhookIds: readonly string[]): Promise<void>;
  /** Deletes the waiting deliveries and the health of an endpoint. */
  forget(webhookId: string): Promise<void>;
  /** The newest attempts, newest first. */
  attempts(webhookId: string, limit: number): Promise<AttemptRecord[]>;
  /** Requests a redelivery of an attempt's event; false if there is no such attempt. */
  repeat(webhookId: string, attemptId: string): Promise<boolean>;
}

/** A delivery that is inserted together with its event. */
export interface NewDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly dueAt: number;
}

/** The rows of deliveries, inserted in the statement of their events; an event that is stored already gets none. */
export function newDeliveries(rows: readonly NewDelivery[]): PlannedRows {
  return {
    rows,
    insertSql: (parameter) =>
      `insert into webhook_delivery (id, webhook_id, event_id, occurred_at, due_at)
       select d."id", d."webhookId", added.id, added.occurred_at, ${timeOf('d."dueAt"')}
       from jsonb_to_recordset(${parameter}) as d ("id" uuid, "webhookId" text, "eventId" uuid, "dueAt" bigint)
       join added on added.id = d."eventId"
       returning id`,
  };
}

export interface EndpointCapacity {
  readonly webhookId: string;
  readonly capacity: number;
}

export interface WaitingDelivery {
  readonly id: string;
  readonly webhookId: string;
  /** Number of the next attempt, from 1. */
  readonly attempt: number;
  readonly dueAt: number;
  readonly event: Pick<EventEntry, "id" | "occurredAt" | "type" | "data">;
}

export function createDeliveries(database: () => Database): Deliveries {
  return {
    async takeRepeats(dueAt) {
      const rows = await database().query<{ webhook_id: string }>(
        `with taken as (delete from webhook_repeat returning webhook_id, event_id, occurred_at)
         insert into webhook_delivery (webhook_id, event_id, occurred_at, due_at)
         select webhook_id, event_id, occurred_at, ${timeOf("$1::bigint")} from taken
         returning webhook_id`,
        [dueAt],
      );
      return [...new Set(rows.map((row) => row.webhook_id))];
    },

    async next(endpoints, except) {
      const rows = await database().query<DeliveryRow>(
        `select d.id, d.webhook_id, d.attempt, ${millisecondsOf("d.due_at")} as due_at, e.id as event_id, e.type, e.data,
           ${millisecondsOf("e.occurred_at")} as occurred_at
         from unnest($1::text[], $2::int[]) as w (webhook_id, capacity)
         cross join lateral (
           select * from webhook_delivery d
           where d.webhook_id = w.webhook_id and d.id <> all ($3::uuid[]) order by d.due_at, d.id limit w.capacity
         ) d
         join event e on e.id = d.event_id and e.occurred_at = d.occurred_at
         order by d.due_at, d.id`,
        [endpoints.map(({ webhookId }) => webhookId), endpoints.map(({ capacity }) => capacity), except],
      );
      return rows.map((row) => ({
        id: row.id,
        webhookId: row.webhook_id,
        attempt: row.attempt,
        dueAt: Number(row.due_at),
        event: { id: row.event_id, type: row.type, data: row.data, occurredAt: Number(row.occurred_at) },
      }));
    },

    record: (attempts) => recordAttempts(database(), attempts),

    async retainOnly(webhookIds) {
      await database().query(
        `with deleted as (delete from webhook_health where webhook_id <> all ($1::text[]))
         delete from webhook_delivery where webhook_id <> all ($1::text[])`,
        [webhookIds],
      );
    },

    async forget(webhookId) {
      await database().query(
        `with deleted as (delete from webhook_health where webhook_id = $1)
         delete from webhook_delivery where webhook_id = $1`,
        [webhookId],
      );
    },

    async attempts(webhookId, limit) {
      const rows = await database().read<AttemptRow>(
        `select id, webhook_id, event_id, event_type, attempt, response_status, error_message, duration_ms,
           ${millisecondsOf("delivered_at")} as delivered_at, ${millisecondsOf("occurred_at")} as began_at
         from webhook_attempt where webhook_id = $1 order by occurred_at desc, id desc limit $2`,
        [webhookId, limit],
      );
      return rows.map((row) => ({
        id: row.id,
        webhookId: row.webhook_id,
        eventId: row.event_id,
        eventType: row.event_type,
        attempt: row.attempt,
        responseStatus: row.response_status,
        errorMessage: row.error_message,
        deliveredAt: row.delivered_at === null ? null : Number(row.delivered_at),
        beganAt: Number(row.began_at),
        durationMs: row.duration_ms,
      }));
    },

    async repeat(webhookId, attemptId) {
      const rows = await database().query(
        `insert into webhook_repeat (event_id, occurred_at, webhook_id)
         select event_id, event_occurred_at, webhook_id from webhook_attempt where webhook_id = $1 and id = $2
         returning place`,
        [webhookId, attemptId],
      );
      return rows.length > 0;
    },
  };
}

interface DeliveryRow {
  readonly id: string;
  readonly webhook_id: string;
  readonly attempt: number;
  readonly due_at: string;
  readonly event_id: string;
  readonly type: string;
  readonly data: EventEntry["data"];
  readonly occurred_at: string;
}

interface AttemptRow {
  readonly id: string;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly attempt: number;
  readonly response_status: number | null;
  readonly error_message: string | null;
  readonly delivered_at: string | null;
  readonly began_at: string;
  readonly duration_ms: number;
}

/** Implements `record`. */
async function recordAttempts(
  database: Database,
  attempts: readonly EndedAttempt[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await database.query<{ webhook_id: string; failing_since: string }>(
    statement,
    columns.map((column) => attempts.map((attempt) => attempt[column])),
  );
  return new Map(rows.map((row) => [row.webhook_id, Number(row.failing_since)]));
}

/** The fields of an attempt in the order of the statement's parameters. */
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
 * One statement for many attempts: it inserts their rows, deletes or reschedules their deliveries, and updates the
 * health of endpoints where it changes.
 */
const statement = `
  with a as (
    select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::int[], $8::int[],
      $9::text[], $10::bigint[], $11::bigint[], $12::int[], $13::bigint[]) as a (
      id, delivery_id, webhook_id, event_id, event_occurred_at, event_type, attempt, response_status, error_message,
      delivered_at, began_at, duration_ms, next_due_at
    )
  ), inserted as (
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
