import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readUsage } from "./usage.ts";

let postgresql: TestPostgresql;
let tds: TestTds;
beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
});
afterAll(async () => {
  await tds?.stop();
  await postgresql?.stop();
});

const usage = () => readUsage({ paths: { run: tds.run } as never }, AbortSignal.timeout(10_000));

test("errors count by features, without a text of the client", async () => {
  const client = await connectTds(tds);
  const before = await usage();
  expect(before).toMatchObject({ sessions: 1, features: [] });
  expect(before.sinceMs).toBeLessThanOrEqual(Date.now());
  for (const sql of [
    "DBCC SECRETS",
    "SELECT secrets FROM OPENROWSET('secrets', 'secrets', 'secrets')",
    "BEGIN TRY EXEC xp_secrets 'secrets' END TRY BEGIN CATCH THROW END CATCH",
    "SELECT SECRETS(1)",
    "EXEC ('DBCC SECRETS')",
    "SELECT 'secrets' FROM WHERE",
    "SELECT * FROM secrets",
    "SELECT 1 AS a",
  ])
    await client.batch(sql);
  await client.call("sp_secrets");
  const after = await usage();
  expect(after.features.map(({ feature, count }) => [feature, count]).toSorted()).toEqual([
    ["DBCC", 2],
    ["OPENROWSET", 1],
    ["built-in functions", 1],
    ["other syntax", 1],
    ["system procedures", 2],
  ]);
  expect(after.features[0]?.count).toBe(2);
  expect(JSON.stringify(after).toLowerCase()).not.toContain("secrets");
  expect([after.batches - before.batches, after.errors - before.errors]).toEqual([9, 8]);
  await client.close();
  await expect.poll(async () => (await usage()).sessions).toBe(0);
});

test("the second of two equal texts is in the cache", async () => {
  const client = await connectTds(tds);
  const before = await usage();
  for (let time = 0; time < 3; time += 1) expect((await client.batch("SELECT 1 AS cached")).errors).toEqual([]);
  const after = await usage();
  expect([after.cacheLookups - before.cacheLookups, after.cacheHits - before.cacheHits]).toEqual([3, 2]);
  await client.close();
});

test("a refused sign-in counts as an error and is no session", async () => {
  const before = await usage();
  await expect(connectTds(tds, { authentication: { password: "wrong" } })).rejects.toThrow("Login failed");
  const after = await usage();
  expect([after.sessions, after.errors - before.errors]).toEqual([0, 1]);
});
