import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { createHistory, type History } from "../history/history.ts";
import type { EventEntry } from "../store/outbox-entry.ts";
import { createInsertEntries, type EntryPlanner } from "./entry-planner.ts";

let postgresql: TestPostgresql;
let history: History;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  await history.ready;
  for (const table of ["bell", "whistle"])
    await history.database.query(`create table ${table} (id text primary key, event_id uuid not null)`);
});
afterAll(async () => {
  await history?.close();
  await postgresql?.stop();
});

function event(type: string): EventEntry {
  const of = { organizationId: "o", objectKind: "managed-service", objectId: "s", data: {} };
  return { entry: "event", id: uuidv7(), occurredAt: Date.now(), type, ...of };
}

/** Plans a row in its table for each event of the type; `made` collects the ids of inserted rows. */
function planner(table: string, type: string, made: string[]): EntryPlanner {
  return {
    async plan(events) {
      const rows = events.flatMap((each) =>
        each.type === type ? [{ id: `${table} ${each.id}`, event: each.id }] : [],
      );
      return {
        planned: {
          rows,
          insertSql: (parameter) =>
            `insert into ${table} (id, event_id) select r.id, added.id
             from jsonb_to_recordset(${parameter}) as r (id text, event uuid) join added on added.id = r.event returning id`,
        },
        ended: (ids) => made.push(...rows.map(({ id }) => id).filter((id) => ids.has(id))),
      };
    },
  };
}

const count = async (table: string) =>
  (await history.database.query<{ event_id: string }>(`select event_id from ${table}`)).map((row) => row.event_id);

test("rows of several systems are inserted with their events, once", async () => {
  const made: string[] = [];
  const insert = createInsertEntries(history, [planner("bell", "rung", made), planner("whistle", "blown", made)]);
  const [rung, blown, other] = [event("rung"), event("blown"), event("other")];
  await insert([rung, blown, other], 1n);
  await insert([rung, blown, other], 1n);
  expect(await count("bell")).toEqual([rung.id]);
  expect(await count("whistle")).toEqual([blown.id]);
  expect(made).toEqual([`bell ${rung.id}`, `whistle ${blown.id}`]);
});

test("an event whose rows are refused is not inserted either", async () => {
  const [good, doubled] = [event("rung"), event("rung")];
  const twice: EntryPlanner = {
    plan: async (events) => ({
      planned: {
        rows: events.map(({ id }) => ({ id: "the same", event: id })),
        insertSql: (parameter) =>
          `insert into whistle (id, event_id) select r.id, added.id
           from jsonb_to_recordset(${parameter}) as r (id text, event uuid) join added on added.id = r.event returning id`,
      },
      ended: () => undefined,
    }),
  };
  await expect(
    createInsertEntries(history, [planner("bell", "rung", []), twice])([good, doubled], 1n),
  ).rejects.toThrow();
  expect(await count("bell")).not.toContain(good.id);
  const page = { after: undefined, limit: 10, order: "newest first" } as const;
  const { items } = await history.events({ organizationId: "o" }, page);
  expect(items.map(({ id }) => id)).not.toContain(good.id);
});
