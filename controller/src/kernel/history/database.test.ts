import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createDatabase, type Database } from "./database.ts";

let postgresql: TestPostgresql;
let database: Database;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  database = createDatabase({ url: postgresql.url, log: silentLog });
});
afterAll(async () => {
  await database?.close();
  await postgresql?.stop();
});

const own = "SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%pg_sleep(600)%'";
const left = async () => (await database.query(`${own} AND state = 'active'`)).length;

test.each(["query", "read"] as const)(
  "a statement of `%s` that takes too long is canceled, on the server too",
  async (way) => {
    await expect(database[way]("SELECT pg_sleep(600)")).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
    await waitUntil("the server has ended it", async () => (await left()) === 0);
  },
);

test("writers have connections while readers use all of theirs", async () => {
  const readers = Array.from({ length: 20 }, () => database.read("SELECT pg_sleep(600)").catch(() => undefined));
  await waitUntil("readers run", async () => (await left()) > 0);
  expect(await database.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  await Promise.all(readers);
});

test("a session has no statement time-out, and its connection has one again afterwards", async () => {
  const ask = "SELECT current_setting('statement_timeout') AS most";
  const within = await database.session(async (client) => (await client.query<{ most: string }>(ask)).rows);
  expect(within).toEqual([{ most: "0" }]);
  for (let n = 0; n < 10; n += 1) expect(await database.query(ask)).toEqual([{ most: "5s" }]);
});
