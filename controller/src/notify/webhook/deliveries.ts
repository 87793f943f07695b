import type { EventEntry } from "#kernel/store/outbox-entry.ts";
import type { AttemptRecord, EndedAttempt } from "./attempt-record.ts";
import type { Database } from "#kernel/history/database.ts";
import type { PlannedRows } from "#kernel/history/planned-rows.ts";
import { recordAttempts } from "./record-attempts.ts";
import { millisecondsOf, timeOf } from "#kernel/history/times.ts";

/** Deliveries of events to webhook endpoints: what waits, and what was tried. Written so that a crash anywhere repeats, and loses nothing. */
export interface Deliveries {
  /** Makes deliveries, due at this time, of what was asked for again; resolves to the endpoints that get them. */
  takeRepeats(dueAt: number): Promise<string[]>;
  /** The first `room` deliveries of each endpoint in the order in which they are due, also those that are due later. */
  next(endpoints: readonly Room[], except: readonly string[]): Promise<WaitingDelivery[]>;
  /** Keeps what came of attempts and what comes next. Resolves to since when each endpoint fails, of those that do. */
  record(attempts: readonly EndedAttempt[]): Promise<ReadonlyMap<string, number>>;
  /** Drops all that waits for endpoints other than these. */
  keepOnly(webhookIds: readonly string[]): Promise<void>;
  /** Drops all that waits for the endpoint and what is known of its health. */
  forget(webhookId: string): Promise<void>;
  /** The newest attempts, newest first. */
  attempts(webhookId: string, limit: number): Promise<AttemptRecord[]>;
  /** Puts the event of an attempt on the list again for its endpoint; false when there is no such attempt. */
  repeat(webhookId: string, attemptId: string): Promise<boolean>;
}

/** A delivery of an event that comes into the history with it. */
export interface NewDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly dueAt: number;
}

/** Deliveries that are made with their events: of what was there already none is. */
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

export interface Room {
  readonly webhookId: string;
  readonly room: number;
}

export interface WaitingDelivery {
  readonly id: string;
  readonly webhookId: string;
  /** The next attempt, from 1. */
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
         from unnest($1::text[], $2::int[]) as w (webhook_id, room)
         cross join lateral (
           select * from webhook_delivery d
           where d.webhook_id = w.webhook_id and d.id <> all ($3::uuid[]) order by d.due_at, d.id limit w.room
         ) d
         join event e on e.id = d.event_id and e.occurred_at = d.occurred_at
         order by d.due_at, d.id`,
        [endpoints.map(({ webhookId }) => webhookId), endpoints.map(({ room }) => room), except],
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

    async keepOnly(webhookIds) {
      await database().query(
        `with gone as (delete from webhook_health where webhook_id <> all ($1::text[]))
         delete from webhook_delivery where webhook_id <> all ($1::text[])`,
        [webhookIds],
      );
    },

    async forget(webhookId) {
      await database().query(
        `with gone as (delete from webhook_health where webhook_id = $1)
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
