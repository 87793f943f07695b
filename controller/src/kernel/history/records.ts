import type { AuditEntry, EventEntry } from "../store/outbox-entry.ts";
import type { Database } from "./database.ts";
import type { HistoryFilter, HistoryPage, HistoryResult } from "./history-page.ts";
import { millisecondsOf, timeOf } from "./sql-timestamps.ts";

/** Rows of a system, which the statement that inserts their events inserts as well. */
export interface PlannedRows {
  /** Plain objects whose members are columns of `jsonb_to_recordset`. */
  readonly rows: readonly object[];
  /**
   * SQL that inserts the rows from a JSON parameter, joined with `added (id, occurred_at)`, the events that are new. It
   * returns the `id` of each row.
   */
  insertSql(parameter: string): string;
}

/**
 * Inserts events together with the rows that systems plan for them, in one statement, so that no row is missed or
 * inserted twice: the rows of an existing event are skipped. Resolves to the ids of the inserted rows.
 */
export async function insertEvents(
  database: Database,
  events: readonly EventEntry[],
  planned: readonly PlannedRows[],
): Promise<string[]> {
  const plans = planned.filter(({ rows }) => rows.length > 0);
  const steps = plans.map(({ insertSql }, index) => `, plan_${index} as (${insertSql(`$${index + 2}::jsonb`)})`);
  const createdIds = plans.map((_, index) => `select id from plan_${index}`).join(" union all ");
  const rows = await database.query<{ id: string }>(
    `with added as (
     insert into event (id, occurred_at, organization_id, type, object_kind, object_id, data)
     select e.id, ${timeOf("e.occurred_at")}, e.organization_id, e.type, e.object_kind, e.object_id, e.data
     from rows from (jsonb_to_recordset($1::jsonb) as (
       "id" uuid, "occurredAt" bigint, "organizationId" text, "type" text, "objectKind" text, "objectId" text, "data" jsonb
     )) with ordinality as e (id, occurred_at, organization_id, type, object_kind, object_id, data, place)
     order by e.place
     on conflict do nothing
     returning id, occurred_at)${steps.join("")}
     ${createdIds || "select id from added where false"}`,
    [events, ...plans.map((plan) => plan.rows)].map((each) => JSON.stringify(each)),
  );
  return rows.map(({ id }) => id);
}

/** Inserts audit entries; existing ones remain unchanged. */
export async function insertAudit(database: Database, entries: readonly AuditEntry[]): Promise<void> {
  await database.query(
    `insert into audit (id, occurred_at, organization_id, actor, source, action, object_kind, object_id, result, request_id, detail)
     select e.id, ${timeOf("e.occurred_at")}, e.organization_id, e.actor, e.source, e.action, e.object_kind, e.object_id,
       e.result, e.request_id, e.detail
     from rows from (jsonb_to_recordset($1::jsonb) as (
       "id" uuid, "occurredAt" bigint, "organizationId" text, "actor" text, "source" text, "action" text,
       "objectKind" text, "objectId" text, "result" text, "requestId" text, "detail" text
     )) with ordinality as e (id, occurred_at, organization_id, actor, source, action, object_kind, object_id, result,
       request_id, detail, place)
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
  readonly found: string;
}

type EventRow = Row & { type: string; object_kind: EventEntry["objectKind"]; data: EventEntry["data"] };

type AuditRow = Row & {
  actor: string;
  source: string;
  action: string;
  object_kind: AuditEntry["objectKind"];
  result: AuditEntry["result"];
  request_id: string;
  detail: string | null;
};

/** A page of events in the order of their insertion. */
export async function listEvents(
  database: Database,
  filter: HistoryFilter,
  page: HistoryPage,
): Promise<HistoryResult<EventEntry>> {
  const columns = "type, object_kind, data";
  const rows = await list<EventRow>(
    database,
    { table: "event", columns, type: "type", isOfType: "type = ?" },
    filter,
    page,
  );
  return pageOf(rows, page, (row) => ({
    entry: "event",
    ...common(row),
    type: row.type,
    objectKind: row.object_kind,
    data: row.data,
  }));
}

/**
 * The organizations of at most `limit` events after a sequence number, and the newest number of these; without a
 * number, only the newest one.
 */
export async function eventsAfter(
  database: Database,
  after: string | undefined,
  limit: number,
): Promise<{ newest: string; organizationIds: string[] }> {
  if (after === undefined) {
    const [row] = await database.read<{ newest: string }>("select coalesce(max(sequence), 0) as newest from event");
    return { newest: row?.newest ?? "0", organizationIds: [] };
  }
  const rows = await database.read<{ sequence: string; organization_id: string }>(
    "select sequence, organization_id from event where sequence > $1 order by sequence limit $2",
    [after, limit],
  );
  return { newest: rows.at(-1)?.sequence ?? after, organizationIds: rows.map((row) => row.organization_id) };
}

/** A page of audit entries in the order of their insertion. */
export async function listAudit(
  database: Database,
  filter: HistoryFilter,
  page: HistoryPage,
): Promise<HistoryResult<AuditEntry>> {
  const columns = "actor, source, action, object_kind, result, request_id, detail";
  // The action of a refused act ends with the code of its error: the name of the act also finds it, and so does the
  // part of the name before a dot.
  const isOfType = "(? in (action, split_part(action, ' ', 1)) or starts_with(action, ? || '.'))";
  const rows = await list<AuditRow>(database, { table: "audit", columns, type: "action", isOfType }, filter, page);
  return pageOf(rows, page, (row) => ({
    entry: "audit",
    ...common(row),
    actor: row.actor,
    source: row.source,
    action: row.action,
    objectKind: row.object_kind,
    result: row.result,
    requestId: row.request_id,
    ...(row.detail !== null && { detail: row.detail }),
  }));
}

/** Limit of the text of one page, in bytes; a page has at least one row. */
const pageBytesMax = 1024 * 1024;

/**
 * The rows of a page. Their column `found` is the number of matching rows up to `limit` + 1, so a number above the
 * page's length means that more rows match.
 */
async function list<R extends Row>(
  database: Database,
  { table, columns, type, isOfType }: { table: string; columns: string; type: string; isOfType: string },
  filter: HistoryFilter,
  { after, limit, order }: HistoryPage,
): Promise<R[]> {
  const newest = order === "newest first";
  // `?` stands for the value's parameter.
  const conditions: readonly (readonly [string, unknown])[] = [
    ["organization_id = ?", filter.organizationId],
    ["object_id = ?", filter.objectId],
    ["(object_id = ? or data->>'service_id' = ?)", filter.serviceId],
    ["actor = ?", filter.actor],
    [isOfType, filter.type],
    [`${type} = any (?)`, filter.types],
    ["occurred_at >= ?", filter.since === undefined ? undefined : new Date(filter.since)],
    ["occurred_at < ?", filter.until === undefined ? undefined : new Date(filter.until)],
    [`sequence ${newest ? "<" : ">"} ?`, after],
  ];
  const applied = conditions.filter(([, value]) => value !== undefined);
  const where = applied.map(([condition], index) => condition.replaceAll("?", `$${index + 1}`)).join(" and ") || "true";
  const direction = newest ? "desc" : "asc";
  return database.read<R>(
    `with page as materialized (
       select sequence, id, ${millisecondsOf("occurred_at")} as occurred_at, organization_id, object_id, ${columns}
       from ${table} where ${where} order by sequence ${direction} limit ${Math.trunc(limit) + 1}),
     measured as (
       select page.*, count(*) over () as found, row_number() over until_here as place,
         sum(octet_length(page::text)) over until_here as bytes
       from page window until_here as (order by sequence ${direction}))
     select * from measured where bytes <= ${pageBytesMax} or place = 1 order by place`,
    applied.map(([, value]) => value),
  );
}

function common({ id, occurred_at, organization_id, object_id }: Row) {
  return { id, occurredAt: Number(occurred_at), organizationId: organization_id, objectId: object_id };
}

function pageOf<R extends Row, T>(rows: readonly R[], { after, limit }: HistoryPage, read: (row: R) => T) {
  const visible = rows.slice(0, limit);
  const more = Number(rows[0]?.found ?? 0) > visible.length;
  return { items: visible.map(read), next: visible.at(-1)?.sequence ?? after, more };
}
