import { appendFile, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSampleSpool } from "./sample-spool.ts";

let directory = "";
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-spool-"));
});
afterEach(() => rm(directory, { recursive: true }));

const path = () => join(directory, "samples");
const sample = (index: number) => ({
  timeMs: index * 15_000,
  metricNumbers: [1, 2, 3, 4],
  values: [index, 0.1 + index, 1e9, 0],
});
const indices = (samples: readonly { readonly timeMs: number }[]) => samples.map(({ timeMs }) => timeMs / 15_000);

test("added samples survive a kill of the agent, except for a truncated one", async () => {
  const before = await openSampleSpool(path(), 100);
  for (let index = 0; index < 5; index += 1) await before.add(sample(index));
  await appendFile(path(), 'deadbeef {"t":1');
  const after = await openSampleSpool(path(), 100);
  expect(after.oldest(10).samples).toEqual([0, 1, 2, 3, 4].map(sample));
  await after.add(sample(5));
  expect(indices(after.oldest(10).samples)).toEqual([0, 1, 2, 3, 4, 5]);
  await Promise.all([before.close(), after.close()]);
});

test("a full spool drops the oldest, and a batch in flight is removed by cursor, not by index", async () => {
  const spool = await openSampleSpool(path(), 4);
  for (let index = 0; index < 4; index += 1) await spool.add(sample(index));
  const inFlight = spool.oldest(3);
  expect(indices(inFlight.samples)).toEqual([0, 1, 2]);
  await spool.add(sample(4));
  await spool.add(sample(5));
  expect([spool.size, spool.lost]).toEqual([4, 2]);
  await spool.remove(inFlight.through);
  expect(indices(spool.oldest(10).samples)).toEqual([3, 4, 5]);
  await spool.remove(inFlight.through);
  expect(spool.size).toBe(3);
  await spool.close();
});

test("its file stays small with acknowledgments, and has room for a day without", async () => {
  const spool = await openSampleSpool(path(), 5_760);
  for (let index = 0; index < 1_000; index += 1) {
    await spool.add(sample(index));
    await spool.remove(spool.oldest(10).through);
  }
  expect((await stat(path())).size).toBeLessThan(32 << 10);
  const adding = Array.from({ length: 6_000 }, (_, index) => spool.add(sample(index)));
  await Promise.all(adding);
  expect(spool.size).toBe(5_760);
  expect((await stat(path())).size).toBeLessThan(2 << 20);
  await spool.close();
  const again = await openSampleSpool(path(), 5_760);
  expect(indices(again.oldest(1).samples)).toEqual([240]);
  expect(again.size).toBe(5_760);
  await again.close();
});
