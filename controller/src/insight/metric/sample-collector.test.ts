import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { type Sample, SampleSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { uuidv7 } from "uuidv7";
import { expect, test } from "vitest";
import type { StoredSample } from "./samples/samples.ts";
import { createSampleCollector } from "./sample-collector.ts";

const now = Date.parse("2026-03-15T14:30:00Z");

function sample(change: Omit<MessageInitShape<typeof SampleSchema>, "$typeName"> = {}): Sample {
  return create(SampleSchema, { timeMs: BigInt(now - 15_000), slots: [1, 3], values: [50, 7], ...change });
}

/** A history that stores samples, or is unavailable. */
function open() {
  const stored: StoredSample[] = [];
  const state = { away: false, statements: 0 };
  const samples = {
    async insert(these: readonly StoredSample[]) {
      state.statements += 1;
      if (state.away) throw new Error("away");
      stored.push(...these);
    },
  };
  const clock = { now: () => now, monotonicMs: () => 0 };
  const collector = createSampleCollector({ storedSamples: samples, clock, random: () => 0.5, log: silentLog });
  return { collector, stored, state };
}

test("samples of many machines are inserted by one statement and acknowledged after it", async () => {
  const { collector, stored, state } = open();
  const machines = Array.from({ length: 50 }, () => uuidv7());
  const taken = await Promise.all(machines.map((machine) => collector.take(machine, [sample()])));
  expect(taken).toEqual(machines.map(() => ({ stored: true, refused: 0, reason: "" })));
  expect(stored.map(({ machineId }) => machineId)).toEqual(machines);
  expect(state.statements).toBe(1);
  expect([...(stored[0]?.values ?? [])]).toEqual([
    [1, 50],
    [3, 7],
  ]);
});

test.each([
  ["a time that is still to come", { timeMs: BigInt(now + 120_000) }, /120 s ahead/],
  ["a time of days ago", { timeMs: BigInt(now - 25 * 3_600_000) }, /over 24 hours old: of 2026-03-14/],
  ["no time at all", { timeMs: -(2n ** 62n) }, /over 24 hours old/],
  ["fewer values than metrics", { values: [1] }, /one value for each metric/],
  ["a number of no catalog", { slots: [0, 9_999] }, /no catalog/],
  ["a value that is not finite", { values: [Number.NaN, 1] }, /not finite/],
])("a sample with %s is refused, and the other samples of its batch are stored", async (_, change, reason) => {
  const { collector, stored } = open();
  const taken = await collector.take(uuidv7(), [sample(), sample(change), sample({ timeMs: BigInt(now) })]);
  expect(taken).toEqual({ stored: true, refused: 1, reason: expect.stringMatching(reason) });
  expect(stored.map(({ timeMs }) => timeMs)).toEqual([now - 15_000, now]);
});

test("machines retry while the history is unavailable, and when memory is full", async () => {
  const { collector, stored, state } = open();
  state.away = true;
  const many = Array.from({ length: 300 }, () => Array.from({ length: 100 }, () => sample()));
  const taken = await Promise.all(many.map((samples) => collector.take(uuidv7(), samples)));
  expect(taken.every((each) => !each.stored && each.retryMs >= 5_000)).toBe(true);
  // All of them would need 15 statements: a third was rejected before any.
  expect(state.statements).toBeLessThan(13);
  state.away = false;
  expect((await collector.take(uuidv7(), [sample()])).stored).toBe(true);
  expect(stored).toHaveLength(1);
});

test("samples in flight at close are stored and acknowledged; later ones are rejected", async () => {
  const { collector, stored } = open();
  const taken = collector.take(uuidv7(), [sample()]);
  await collector.close();
  expect((await taken).stored).toBe(true);
  expect((await collector.take(uuidv7(), [sample()])).stored).toBe(false);
  expect(stored).toHaveLength(1);
});
