import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { createHistory, type History } from "#kernel/history/history.ts";
import type { PointsQuery } from "./sample-points.ts";
import { createSamples, type Samples, type StoredSample } from "./samples.ts";

let postgresql: TestPostgresql;
let history: History;
let samples: Samples;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** A time in the middle of an hour, and of a quarter of a day. */
const now = Date.parse("2026-03-15T14:30:00Z");

beforeAll(async () => {
  postgresql = await startTestPostgresql(["timezone=Asia/Kolkata"]);
  history = createHistory({ url: postgresql.url, log: silentLog, now: () => now });
  await history.ready;
  samples = createSamples(history.sql);
  history.addTableMaintenance(samples.rollUp);
});
afterAll(async () => {
  await history?.close();
  await postgresql?.stop();
});

/** One sample each 15 s from one time to another: metric 1 counts 0, 1, 2, 3 in each minute, metric 3 is always 7. */
function samplesOf(machineId: string, fromMs: number, toMs: number): StoredSample[] {
  const count = (toMs - fromMs) / 15_000;
  return Array.from({ length: count }, (_, index) => {
    const timeMs = fromMs + index * 15_000;
    const ofMinute = (timeMs % minuteMs) / 15_000;
    return {
      machineId,
      timeMs,
      values: new Map([
        [1, ofMinute],
        [3, 7],
      ]),
    };
  });
}

function query(machineId: string, fromMs: number, toMs: number, resolutionS: number): PointsQuery {
  return { machineIds: [machineId], metricNumbers: [1, 2, 3], fromS: fromMs / 1_000, toS: toMs / 1_000, resolutionS };
}

async function rowsOf(table: string, machineId: string): Promise<number> {
  const [row] = await history.database.query<{ count: string }>(
    `select count(*) from ${table} where machine_id = '${machineId}'`,
  );
  return Number(row?.count);
}

test("samples are visible as points immediately, each once, and gaps remain gaps", async () => {
  const machine = uuidv7();
  const from = now - 10 * minuteMs;
  const first = samplesOf(machine, from, from + 2 * minuteMs);
  const second = samplesOf(machine, from + 5 * minuteMs, from + 6 * minuteMs);
  // A batch whose acknowledgment was lost is sent again, with further samples.
  await samples.insert(first);
  await samples.insert([...first.slice(3), ...second]);
  await Promise.all([samples.insert(second), samples.insert(second)]);
  expect(await rowsOf("sample", machine)).toBe(12);
  const points = await samples.points(query(machine, from, now, 60));
  const timesOf = [0, 1, 5].map((minute) => from / 1_000 + minute * 60);
  expect(points).toEqual([
    ...timesOf.map((timeS) => ({ machineId: machine, metricNumber: 1, timeS, average: 1.5, minimum: 0, maximum: 3 })),
    ...timesOf.map((timeS) => ({ machineId: machine, metricNumber: 3, timeS, average: 7, minimum: 7, maximum: 7 })),
  ]);
});

test("an average lies between minimum and maximum, although sums are rounded", async () => {
  const machineId = uuidv7();
  const from = now - 30 * minuteMs;
  await samples.insert(
    [0, 1, 2].map((index) => ({ machineId, timeMs: from + index * 15_000, values: new Map([[1, 2.7]]) })),
  );
  const [point] = await samples.points(query(machineId, from, now, 60));
  expect(point).toMatchObject({ average: 2.7, minimum: 2.7, maximum: 2.7 });
});

test("roll-ups give the same points as the samples, however often and late they run", async () => {
  const machine = uuidv7();
  const from = now - 5.5 * hourMs;
  const all = samplesOf(machine, from, now);
  const [early, late] = [all.slice(0, 700), all.slice(700, 900)];
  await samples.insert([...early, ...all.slice(900)]);
  const both = async () =>
    Promise.all([
      samples.points(query(machine, from, now, 300)),
      samples.points(query(machine, from - 30 * minuteMs, now + 30 * minuteMs, 3_600)),
    ]);
  const before = await both();
  expect(before[1]?.filter(({ metricNumber }) => metricNumber === 3).length).toBe(6);
  expect(await samples.rollUp(now)).toBeGreaterThanOrEqual(5);
  expect(await both()).toEqual(before);
  expect(await samples.rollUp(now)).toBe(0);
  // Samples that an outage delayed roll up their hours again, and no others.
  const [firstMinute] = await history.database.query<{ xmin: string }>(
    `select xmin::text from sample_minute where machine_id = '${machine}' order by time limit 1`,
  );
  await samples.insert(late);
  const complete = await both();
  expect(complete[0]?.length).toBeGreaterThan(before[0]?.length ?? 0);
  expect(await samples.rollUp(now)).toBeGreaterThan(0);
  expect(await both()).toEqual(complete);
  expect(
    await history.database.query(
      `select xmin::text from sample_minute where machine_id = '${machine}' order by time limit 1`,
    ),
  ).toEqual([firstMinute]);
  // The hour in progress is not rolled up.
  expect(await rowsOf("sample_minute", machine)).toBe(5 * 60);
});

test("samples that arrive during the roll-up of their hour are in the next one", async () => {
  const machine = uuidv7();
  const from = now - 3.5 * hourMs;
  const all = samplesOf(machine, from, from + hourMs / 2);
  for (let index = 0; index < all.length; index += 12) {
    // Concurrently: the insert waits for the lock of the roll-up, or the roll-up skips the hour.
    await Promise.all([samples.insert(all.slice(index, index + 12)), samples.rollUp(now)]);
  }
  await samples.rollUp(now);
  const counted = await history.database.query<{ n: string }>(
    `select sum(counts[1])::text as n from sample_minute where machine_id = '${machine}'
     union all select sum(counts[1])::text from sample_hour where machine_id = '${machine}'`,
  );
  expect(counted.map(({ n }) => Number(n))).toEqual([all.length, all.length]);
});

test("old samples are dropped by partition after the roll-up; minutes and hours stay longer", async () => {
  const machine = uuidv7();
  const from = now - 23 * hourMs;
  await samples.insert(samplesOf(machine, from, from + minuteMs));
  const later = now + 12 * hourMs;
  await history.prepare(later);
  expect((await history.dropExpired(later)).filter((name) => name.startsWith("sample_2026"))).not.toEqual([]);
  const tables = ["sample", "sample_minute", "sample_five_minutes", "sample_hour"];
  expect(await Promise.all(tables.map((table) => rowsOf(table, machine)))).toEqual([0, 1, 1, 1]);
  const week = await samples.points(query(machine, now - 7 * 24 * hourMs, later, 300));
  expect(week.filter(({ metricNumber }) => metricNumber === 1)).toMatchObject([
    { average: 1.5, minimum: 0, maximum: 3 },
  ]);
  await history.dropExpired(now + 10 * 24 * hourMs);
  expect(await Promise.all(tables.map((table) => rowsOf(table, machine)))).toEqual([0, 0, 0, 1]);
});
