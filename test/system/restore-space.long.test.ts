import { afterAll, beforeAll, expect, test } from "vitest";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

const fixture = createBackupsUnderTest();
beforeAll(() => fixture.start(), longMs);
afterAll(fixture.remove, longMs);

const rounds = 24;

// Only root gives each machine a separate disk that can be full.
test.skipIf(!asRoot)(
  "a service is restored, and drilled, on a disk that is smaller than the log since its base",
  async () => {
    await fixture.untilRestorable();
    const sql = (statement: string) => fixture.sql(fixture.source, statement);
    await sql("CREATE TABLE wide (line text STORAGE EXTERNAL)");
    await sql("CREATE TABLE rounds (number int PRIMARY KEY)");
    await sql("INSERT INTO wide SELECT repeat(md5(i::text), 31250) FROM generate_series(1, 48) AS i");
    await sql("CREATE TABLE copied (LIKE wide INCLUDING STORAGE)");
    for (let round = 1; round <= rounds; round += 1) {
      await sql("INSERT INTO copied SELECT * FROM wide");
      await sql("TRUNCATE copied");
      await sql(`INSERT INTO rounds VALUES (${round})`);
      // The log is archived before the next round.
      const at = Date.now();
      const isArchived = async () => Date.parse((await fixture.window())?.restorable?.to ?? "") > at;
      await waitUntil("the window reaches the round", isArchived, { withinMs: longMs, everyMs: 200 });
    }
    const [log] = await sql("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float / 1048576 AS mib");
    expect(log?.["mib"]).toBeGreaterThan(1_100);
    const to = (await fixture.window())?.restorable?.to ?? "";
    const copy = await fixture.created(`services restore orders --name copy --to ${to}`);
    expect(await fixture.sql(copy, "SELECT count(*)::int AS rounds FROM rounds")).toEqual([{ rounds }]);
    // A restore to any point in time since the engine's start replays the same log.
    await fixture.holdfast("backups drill orders --wait");
    const { backups } = await fixture.services.get(fixture.source.service.id);
    expect(backups?.last_drill).toMatchObject({ passed: true });
  },
  900_000,
);
