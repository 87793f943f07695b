import type { AuditEntry, EventEntry } from "../store/outbox-entry.ts";
import type { Database } from "./database.ts";
import type { NewDelivery } from "./deliveries.ts";
import type { HistoryFilter, HistoryPage, HistoryResult } from "./history-page.ts";
import { millisecondsOf, timeOf } from "./times.ts";

/**
 * Events with the deliveries that they mean, in one statement, so that no event is missed or told twice: what was there already
 * brings no delivery. Resolves to the ids of the deliveries that were made.
 */
export async function insertEvents(
  database: Database,
  events: readonly EventEntry[],
  deliveries: readonly NewDelivery[],
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `with added as (
     insert into event (id, occurred_at, organization_id, type, object_kind, object_id, data)
     select e.id, ${timeOf("e.occurred_at")}, e.organization_id, e.type, e.object_kind, e.object_id, e.data
     from rows from (jsonb_to_recordset($1::jsonb) as (
       "id" uuid, "occurredAt" bigint, "organizationId" text, "type" text, "objectKind" text, "objectId" text, "data" jsonb
     )) with ordinality as e (id, occurred_at, organization_id, type, object_kind, object_id, data, place)
     order by e.place
     on conflict do nothing
     returning id, occurred_at)
     insert into webhook_delivery (id, webhook_id, event_id, occurred_at, due_at)
     select d."id", d."webhookId", added.id, added.occurred_at, ${timeOf('d."dueAt"')}
     from jsonb_to_recordset($2::jsonb) as d ("id" uuid, "webhookId" text, "eventId" uuid, "dueAt" bigint)
     join added on added.id = d."eventId"
     returning id`,
    [JSON.stringify(events), JSON.stringify(deliveries)],
  );
  return rows.map(({ id }) => id);
}

/** Entries that are there already stay as they are. */
export async function insertAudit(database: Database, entries: readonly AuditEntry[]): Promise<void> {
  await database.query(
    `insert into audit (id, occurred_at, organization_id, actor, source, action, object_kind, object_id, result, request_id)
     select e.id, ${timeOf("e.occurred_at")}, e.organization_id, e.actor, e.source, e.action, e.object_kind, e.object_id,
       e.result, e.request_id
     from rows from (jsonb_to_recordset($1::jsonb) as (
       "id" uuid, "occurredAt" bigint, "organizationId" text, "actor" text, "source" text, "action" text,
       "objectKind" text, "objectId" text, "result" text, "requestId" text
     )) with ordinality as e (id, occurred_at, organization_id, actor, source, action, object_kind, object_id, result,
       request_id, place)
     order by e.place
     on conflict do nothing`,
    [JSON.stringify(entries)],
  );
}

interface Row {
  readonly sequence: string;
  readonly id: string;
  readonly occurred_at: string;
  readonly organization_id: string;
  readonly object_id: string;
}

type EventRow = Row & { type: string; object_kind: EventEntry["objectKind"]; data: EventEntry["data"] };

type AuditRow = Row & {
  actor: string;
  source: string;
  action: string;
  object_kind: AuditEntry["objectKind"];
  result: AuditEntry["result"];
  request_id: string;
};

/** A page of events by the order in which they were recorded. */
export async function listEvents(
  database: Database,
  filter: HistoryFilter,
  page: HistoryPage,
): Promise<HistoryResult<EventEntry>> {
  const columns = "type, object_kind, data";
  const rows = await list<EventRow>(database, { table: "event", columns, type: "type" }, filter, page);
  return pageOf(rows, page, (row) => ({
    entry: "event",
    ...common(row),
    type: row.type,
    objectKind: row.object_kind,
    data: row.data,
  }));
}

/** A page of audit entries by the order in which they were recorded. */
export async function listAudit(
  database: Database,
  filter: HistoryFilter,
  page: HistoryPage,
): Promise<HistoryResult<AuditEntry>> {
  const columns = "actor, source, action, object_kind, result, request_id";
  const rows = await list<AuditRow>(database, { table: "audit", columns, type: "action" }, filter, page);
  return pageOf(rows, page, (row) => ({
    entry: "audit",
    ...common(row),
    actor: row.actor,
    source: row.source,
    action: row.action,
    objectKind: row.object_kind,
    result: row.result,
    requestId: row.request_id,
  }));
}

/** One row more than the page has, so that it is known whether there are more. */
async function list<R extends Row>(
  database: Database,
  { table, columns, type }: { table: string; columns: string; type: string },
  filter: HistoryFilter,
  { after, limit, order }: HistoryPage,
): Promise<R[]> {
  const newest = order === "newest first";
  const conditions: readonly (readonly [string, unknown])[] = [
    ["organization_id =", filter.organizationId],
    ["object_id =", filter.objectId],
    ["actor =", filter.actor],
    [`${type} =`, filter.type],
    ["occurred_at >=", filter.since === undefined ? undefined : new Date(filter.since)],
    ["occurred_at <", filter.until === undefined ? undefined : new Date(filter.until)],
    [`sequence ${newest ? "<" : ">"}`, after],
  ];
  const given = conditions.filter(([, value]) => value !== undefined);
  const where = given.map(([condition], index) => `${condition} $${index + 1}`).join(" and ") || "true";
  return database.query<R>(
    `select sequence, id, ${millisecondsOf("occurred_at")} as occurred_at, organization_id, object_id, ${columns}
     from ${table} where ${where} order by sequence ${newest ? "desc" : "asc"} limit ${Math.trunc(limit) + 1}`,
    given.map(([, value]) => value),
  );
}

function common({ id, occurred_at, organization_id, object_id }: Row) {
  return { id, occurredAt: Number(occurred_at), organizationId: organization_id, objectId: object_id };
}

function pageOf<R extends Row, T>(rows: readonly R[], { after, limit }: HistoryPage, read: (row: R) => T) {
  const shown = rows.slice(0, limit);
  return { items: shown.map(read), next: shown.at(-1)?.sequence ?? after, more: rows.length > limit };
}
