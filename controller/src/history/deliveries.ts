import type { EventEntry } from "../outbox/outbox-entry.ts";
import type { Database } from "./database.ts";
import { millisecondsOf, timeOf } from "./times.ts";

/** Deliveries of events to webhook endpoints: what waits, and what was tried. Written so that a crash anywhere repeats, and loses nothing. */
export interface Deliveries {
  /** Events that were not given to the endpoints yet, oldest first. */
  fanOut(limit: number): Promise<WaitingEvent[]>;
  /** Makes the deliveries and takes their events off the list, all of it or nothing. Twice is as once. */
  spread(places: readonly string[], deliveries: readonly NewDelivery[]): Promise<void>;
  /** The first `room` deliveries of each endpoint in the order in which they are due, also those that are due later. */
  next(endpoints: readonly Room[], except: readonly string[]): Promise<WaitingDelivery[]>;
  /** Keeps what came of attempts and what comes next. Resolves to since when each endpoint fails, null when it does not. */
  record(attempts: readonly EndedAttempt[]): Promise<ReadonlyMap<string, number | null>>;
  /** Drops all that waits for endpoints other than these. */
  keepOnly(webhookIds: readonly string[]): Promise<void>;
  /** Drops all that waits for the endpoint and what is known of its health. */
  forget(webhookId: string): Promise<void>;
  /** The newest attempts, newest first. */
  attempts(webhookId: string, limit: number): Promise<AttemptRecord[]>;
  /** Puts the event of an attempt on the list again for its endpoint; false when there is no such attempt. */
  repeat(webhookId: string, attemptId: string): Promise<boolean>;
}

export interface WaitingEvent {
  readonly place: string;
  /** The only endpoint that gets it; null for all that want it. */
  readonly webhookId: string | null;
  readonly event: Pick<EventEntry, "id" | "occurredAt" | "organizationId" | "type" | "objectId">;
}

export interface NewDelivery {
  readonly place: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly occurredAt: number;
  readonly dueAt: number;
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

export interface EndedAttempt extends AttemptRecord {
  readonly deliveryId: string;
  readonly eventOccurredAt: number;
  /** When the next attempt is due; null when there is none. */
  readonly nextDueAt: number | null;
}

export function createDeliveries(database: () => Database): Deliveries {
  return {
    async fanOut(limit) {
      const rows = await database().query<FanOutRow>(
        `select w.place, w.webhook_id, e.id, e.type, e.organization_id, e.object_id,
           ${millisecondsOf("e.occurred_at")} as occurred_at
         from webhook_fan_out w join event e on e.id = w.event_id and e.occurred_at = w.occurred_at
         order by w.place limit $1`,
        [limit],
      );
      return rows.map((row) => ({
        place: row.place,
        webhookId: row.webhook_id,
        event: {
          id: row.id,
          type: row.type,
          organizationId: row.organization_id,
          objectId: row.object_id,
          occurredAt: Number(row.occurred_at),
        },
      }));
    },

    async spread(places, deliveries) {
      await database().query(
        `with taken as (delete from webhook_fan_out where place = any($1::bigint[]) returning place)
         insert into webhook_delivery (webhook_id, event_id, occurred_at, due_at)
         select d."webhookId", d."eventId", ${timeOf('d."occurredAt"')}, ${timeOf('d."dueAt"')}
         from jsonb_to_recordset($2::jsonb) as d (
           "place" bigint, "webhookId" text, "eventId" uuid, "occurredAt" bigint, "dueAt" bigint
         ) join taken on taken.place = d."place" order by d."place"`,
        [places, JSON.stringify(deliveries)],
      );
    },

    async next(endpoints, except) {
      const rows = await database().query<DeliveryRow>(
        `select d.id, d.webhook_id, d.attempt, ${millisecondsOf("d.due_at")} as due_at, e.id as event_id, e.type, e.data,
           ${millisecondsOf("e.occurred_at")} as occurred_at
         from unnest($1::text[], $2::int[]) as w (webhook_id, room)
         cross join lateral (
           select * from webhook_delivery d
           where d.webhook_id = w.webhook_id and d.id <> all ($3::uuid[]) order by d.due_at limit w.room
         ) d
         join event e on e.id = d.event_id and e.occurred_at = d.occurred_at
         order by d.due_at`,
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

    async record(attempts) {
      const rows = await database().query<{ webhook_id: string; failing_since: string | null }>(recordStatement, [
        JSON.stringify(attempts),
      ]);
      return new Map(
        rows.map((row) => [row.webhook_id, row.failing_since === null ? null : Number(row.failing_since)]),
      );
    },

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
      const rows = await database().query<AttemptRow>(
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
        `insert into webhook_fan_out (event_id, occurred_at, webhook_id)
         select event_id, event_occurred_at, webhook_id from webhook_attempt where webhook_id = $1 and id = $2
         returning place`,
        [webhookId, attemptId],
      );
      return rows.length > 0;
    },
  };
}

/** One statement for many attempts: their rows, what comes next of their deliveries, and the health of their endpoints. */
const recordStatement = `
  with a as (
    select * from jsonb_to_recordset($1::jsonb) as a (
      "id" uuid, "deliveryId" uuid, "webhookId" text, "eventId" uuid, "eventOccurredAt" bigint, "eventType" text,
      "attempt" int, "responseStatus" int, "errorMessage" text, "deliveredAt" bigint, "beganAt" bigint,
      "durationMs" int, "nextDueAt" bigint
    )
  ), kept as (
    insert into webhook_attempt (id, occurred_at, webhook_id, event_id, event_occurred_at, event_type, attempt,
      response_status, error_message, delivered_at, duration_ms)
    select "id", ${timeOf('"beganAt"')}, "webhookId", "eventId", ${timeOf('"eventOccurredAt"')}, "eventType", "attempt",
      "responseStatus", "errorMessage", ${timeOf('"deliveredAt"')}, "durationMs"
    from a on conflict do nothing
  ), over as (
    delete from webhook_delivery d using a where d.id = a."deliveryId" and a."nextDueAt" is null
  ), again as (
    update webhook_delivery d set attempt = a."attempt" + 1, due_at = ${timeOf('a."nextDueAt"')}
    from a where d.id = a."deliveryId" and a."nextDueAt" is not null
  )
  insert into webhook_health as h (webhook_id, failing_since)
  select "webhookId", case when bool_or("deliveredAt" is not null) then null else ${timeOf('min("beganAt")')} end
  from a group by "webhookId"
  on conflict (webhook_id) do update
    set failing_since = case when excluded.failing_since is not null
      then coalesce(h.failing_since, excluded.failing_since) end
  returning webhook_id, ${millisecondsOf("failing_since")} as failing_since`;

interface FanOutRow {
  readonly place: string;
  readonly webhook_id: string | null;
  readonly id: string;
  readonly type: string;
  readonly organization_id: string;
  readonly object_id: string;
  readonly occurred_at: string;
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
