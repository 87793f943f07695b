import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHistory, type History } from "#kernel/history/history.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import {
  createRunStates,
  type ExportCursor,
  TakenOver,
  type BatchProgress,
  type RunStates,
} from "./export-run-state.ts";

let postgresql: TestPostgresql;
let history: History;
let states: RunStates;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  await history.ready;
  states = createRunStates(history.sql);
});
afterAll(async () => {
  await history?.close();
  await postgresql?.stop();
});

const [machineId, serviceId] = [uuidv7(), uuidv7()];
const cursor = (position: string, stream: ExportCursor["stream"] = "metrics") => ({
  machineId,
  serviceId,
  stream,
  position,
});
const nothing = { samples: 0, logEntries: 0, tooOld: 0, refused: 0, expired: 0, expiredSegments: 0, atMs: 1_000 };
const progress = (change: Partial<BatchProgress>): BatchProgress => ({ ...nothing, cursors: [], ...change });

test("cursors and counters advance together, and the next owner reads them", async () => {
  const id = uuidv7();
  const { state, cursors } = await states.take(id);
  expect(cursors).toEqual([]);
  await states.advance(
    id,
    state.epoch,
    progress({ samples: 5, refused: 1, cursors: [cursor("10"), cursor("1:7", "logs")] }),
  );
  await states.advance(
    id,
    state.epoch,
    progress({ samples: 3, logEntries: 2, expired: 4, cursors: [cursor("20")], atMs: 2_000 }),
  );
  const next = await states.take(id);
  expect(next.state).toMatchObject({ samples: 8, logEntries: 2, refused: 1, expired: 4, lastExportMs: 2_000 });
  expect(next.state.epoch).toBe(state.epoch + 1);
  expect(next.cursors.toSorted((a, b) => (a.stream < b.stream ? -1 : 1))).toEqual([
    cursor("1:7", "logs"),
    cursor("20"),
  ]);
});

test("a paused owner moves no cursor back and counts nothing twice", async () => {
  const id = uuidv7();
  const paused = await states.take(id);
  const owner = await states.take(id);
  await states.advance(id, owner.state.epoch, progress({ samples: 9, cursors: [cursor("90")] }));
  const late = progress({ samples: 1, cursors: [cursor("10")] });
  await expect(states.advance(id, paused.state.epoch, late)).rejects.toThrow(TakenOver);
  const end = { atMs: 1, error: "HTTP 500", behindSinceMs: 1, hasSent: true };
  await expect(states.endTick(id, paused.state.epoch, end)).rejects.toThrow(TakenOver);
  await expect(states.setAnnounced(id, paused.state.epoch, true)).rejects.toThrow(TakenOver);
  await states.drop(id, paused.state.epoch, [cursor("90")]);
  const { state, cursors } = await states.take(id);
  expect(cursors).toEqual([cursor("90")]);
  expect(state).toMatchObject({ samples: 9, consecutiveFailures: 0, lastError: null });
});

test("failed ticks are counted until one succeeds or the failures are cleared", async () => {
  const id = uuidv7();
  const { epoch } = (await states.take(id)).state;
  const fail = (atMs: number) =>
    states.endTick(id, epoch, { atMs, error: "HTTP 503", behindSinceMs: 5, hasSent: true });
  await fail(10);
  expect(await fail(20)).toMatchObject({
    consecutiveFailures: 2,
    failingSinceMs: 10,
    lastError: "HTTP 503",
    lastAttemptMs: 20,
    behindSinceMs: 5,
  });
  await states.setAnnounced(id, epoch, true);
  const recovered = await states.endTick(id, epoch, { atMs: 30, error: null, behindSinceMs: null, hasSent: false });
  expect(recovered).toMatchObject({ consecutiveFailures: 0, failingSinceMs: null, lastError: null, isAnnounced: true });
  expect(recovered).toMatchObject({ lastAttemptMs: 20, behindSinceMs: null });
  await fail(40);
  await states.clear(id);
  expect((await states.read([id, uuidv7()])).get(id)).toMatchObject({ consecutiveFailures: 0, isAnnounced: false });
});

test("a deleted run state deletes its cursors", async () => {
  const id = uuidv7();
  const { epoch } = (await states.take(id)).state;
  await states.advance(id, epoch, progress({ cursors: [cursor("1")] }));
  expect(await states.ids()).toContain(id);
  await states.forget([id]);
  expect(await states.ids()).not.toContain(id);
  expect((await states.take(id)).cursors).toEqual([]);
});
