import { logsPrefix } from "@holdfast/common/backup/object-names.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { namesBelow, objectsOf } from "@holdfast/testing/platform/stored-backups.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type BackupJson, createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

interface Events {
  readonly events: readonly { readonly data: { readonly since: string; readonly message: string } }[];
}

const fixture = createBackupsUnderTest();
beforeAll(() => fixture.start({ HOLDFAST_IDLE_LOG_AFTER_S: "3" }), longMs);
afterAll(fixture.remove, longMs);

test("log that the store lost is a gap as soon as a restore finds it, and a new base follows", async () => {
  const { platform, services, source } = fixture;
  const { id } = source.service;
  const objects = objectsOf(platform);
  const sql = (text: string) => fixture.sql(source, text);
  const wait = { withinMs: longMs, everyMs: 200, describe: () => services.describe(id) };
  const stored = () => namesBelow(objects, logsPrefix(id));

  /** Writes a row, and resolves with a later time up to which the log is stored. */
  async function writeRow(row: number): Promise<string> {
    await sql(`INSERT INTO rows VALUES (${row})`);
    const at = new Date(await reserveMillisecond()).toISOString();
    const isStored = async () => ((await fixture.window())?.restorable?.to ?? "") > at;
    await waitUntil(`the log of row ${row} is stored`, isStored, wait);
    return at;
  }

  await fixture.untilRestorable();
  await sql("CREATE TABLE rows (number int)");
  const before = await writeRow(1);
  const intact = new Set(await stored());
  await writeRow(2);
  const lost = (await stored()).find((key) => !intact.has(key)) ?? "";
  const behind = await writeRow(3);
  await objects.delete(lost);

  const body = { target_service_name: "never", restore_point: behind };
  const response = await platform.rest.post<ServiceJson>(fixture.pathOf(id, "/restore"), body);
  const { id: copy } = expectStatus(response, 202).json;
  const failed = await waitUntil(
    "the restore fails",
    async () => {
      const { error, status } = await services.get(copy);
      return status === "Error" ? error : undefined;
    },
    wait,
  );
  expect(failed?.message).toContain(`${lost} is not in the store. The object store lost or changed an object`);

  const gap = await waitUntil(
    "the gap is announced",
    async () => {
      const { json } = await platform.rest.get<Events>(`/managed-services/${id}/events?type=backup.gap`);
      return json.events[0]?.data;
    },
    wait,
  );
  expect(gap.message).toContain(`Restore to ${gap.since} or earlier`);
  expect(gap.since >= before && gap.since < behind).toBe(true);
  const based = await waitUntil(
    "the new base is complete",
    async () => {
      const { json } = await platform.rest.get<{ backups: (BackupJson & { trigger: string })[] }>(fixture.pathOf(id));
      return json.backups.find(({ trigger, status }) => trigger === "gap" && status === "completed");
    },
    wait,
  );
  expect(based).toMatchObject({ backup_type: "automated" });
  const after = await writeRow(4);
  const window = await fixture.window();
  expect(window?.gaps).toEqual([{ from: gap.since, to: expect.any(String) }]);
  const refused = await platform.rest.post(fixture.pathOf(id, "/restore"), body);
  expect([refused.status, refused.json]).toMatchObject([422, { code: "restore_point_unavailable" }]);

  for (const [name, at, rows] of [
    ["before", before, [1]],
    ["after", after, [1, 2, 3, 4]],
  ] as const) {
    const restored = await fixture.created(`services restore orders --name ${name} --to ${at}`);
    const found = await fixture.sql(restored, "SELECT number FROM rows ORDER BY 1");
    expect(found.map(({ number }) => number)).toEqual(rows);
  }
}, 600_000);
