import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { stateOfSpace } from "../space/space-level.ts";
import { createDatabase, type Database } from "./database.ts";
import { createHistorySpace } from "./history-space.ts";

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

test("users may add nothing to a nearly full history, while the platform still writes", async () => {
  const { usedBytes: emptyBytes = 0 } = await createdWith(1).measure();
  // The database uses half of the quota.
  const space = createdWith(emptyBytes * 2);
  const empty = await space.measure();
  expect(stateOfSpace(empty).state).toBe("ok");
  space.admitGrowth();
  const rows = Math.ceil((emptyBytes * 0.7) / 1_000);
  await database.query("CREATE TABLE filler (text text)");
  await database.query("ALTER TABLE filler ALTER text SET STORAGE PLAIN");
  await database.query("INSERT INTO filler SELECT repeat('x', 1000) FROM generate_series(1, $1)", [rows]);
  expect(stateOfSpace(await space.measure())).toMatchObject({ state: "full", reason: expect.stringContaining("80%") });
  expect(() => space.admitGrowth()).toThrow("history has used");
  await database.query("INSERT INTO filler VALUES ('is written')");
  await database.query("DROP TABLE filler");
  await space.measure();
  space.admitGrowth();
  space.close();
});

test("a history that does not respond is reported, and refuses no additions", async () => {
  const nobody = createDatabase({ url: "postgres://nobody@127.0.0.1:1/none", log: silentLog });
  const space = createHistorySpace({ database: nobody, quotaBytes: 1, log: silentLog });
  expect(stateOfSpace(await space.measure()).state).toBe("unknown");
  space.admitGrowth();
  space.close();
  await nobody.close();
});

function createdWith(quotaBytes: number) {
  const space = createHistorySpace({ database, quotaBytes, log: silentLog });
  space.close();
  return space;
}
