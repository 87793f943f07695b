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

/** A statement that ends only when it is canceled, as `withLock` has the lock. */
const waiting = "SELECT pg_advisory_lock(1)";
const own = `SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%${waiting}%'`;
const left = async () => (await database.query(`${own} AND state = 'active'`)).length;
const withLock = (work: () => Promise<void>) =>
  database.session(async (client) => {
    await client.query("SELECT pg_advisory_lock(1) AS held");
    await work();
    await client.query("SELECT pg_advisory_unlock(1)");
  });

test.each(["query", "read"] as const)("a statement of `%s` that takes too long is canceled, on the server too", (way) =>
  withLock(async () => {
    await expect(database[way](waiting)).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
    await waitUntil("the server has ended it", async () => (await left()) === 0);
  }),
);

test("writers have connections while readers use all of theirs", () =>
  withLock(async () => {
    const readers = Array.from({ length: 20 }, () => database.read(waiting).catch(() => undefined));
    await waitUntil("readers run", async () => (await left()) > 0);
    expect(await database.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await Promise.all(readers);
  }));

test("a session has no statement time-out, and its connection has one again afterwards", async () => {
  const ask = "SELECT current_setting('statement_timeout') AS most";
  const within = await database.session(async (client) => (await client.query<{ most: string }>(ask)).rows);
  expect(within).toEqual([{ most: "0" }]);
  for (let n = 0; n < 10; n += 1) expect(await database.query(ask)).toEqual([{ most: "5s" }]);
});
