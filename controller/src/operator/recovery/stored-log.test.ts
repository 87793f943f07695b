import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newLogSecrets, sealLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LogRange } from "#services/backup/archive/archive.ts";
import { readStoredLog } from "./stored-log.ts";

let directory: string;
const objects = () => createDirectoryStore(directory);
const keys = ["k-1", "k-2"].map((keyId) => ({ keyId, keyVersion: 1, wrappedKey: "w" }));

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-log-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function stored(service: string, term: number, sequence: number, from: number, keyId = "k-1") {
  const time = new Date(from * 1_000).toISOString();
  const header = { service, term, sequence, branch: "1", from: `0/${from}`, to: `0/${from + 1}`, time };
  const sealed = sealLog(Buffer.from("log"), header, { id: keyId, secret: randomBytes(32) }, newLogSecrets());
  async function* body() {
    yield sealed;
  }
  await objects().put(logObject({ service, term }, sequence), body());
}

const noted = (over: Partial<LogRange> = {}): LogRange => ({
  archiveId: "a-1",
  term: 1,
  firstSequence: 1,
  lastSequence: 2,
  fromTime: 0,
  toTime: 2_000,
  checkpoints: [],
  keys: keys.slice(0, 1),
  ...over,
});

test("objects that continue the newest range belong to it, across keys and terms", async () => {
  for (const sequence of [1, 2, 3]) await stored("s-1", 1, sequence, sequence);
  await stored("s-1", 1, 4, 4, "k-2");
  // Of an old primary: the next term went on without it.
  await stored("s-1", 1, 5, 6);
  await stored("s-1", 3, 1, 5, "k-2");
  await stored("s-1", 3, 2, 6, "k-2");
  // A separate archive.
  await stored("s-1", 3, 3, 9, "k-2");
  const { ranges, term } = await readStoredLog(objects(), "s-1", [noted()], keys);
  expect(term).toBe(3);
  expect(ranges).toMatchObject([
    { term: 1, firstSequence: 1, lastSequence: 4, toTime: 4_000, keys },
    { term: 3, firstSequence: 1, lastSequence: 2, toTime: 6_000, continues: true, keys: keys.slice(1) },
  ]);
});

test("a later term ends the previous one where it continues it", async () => {
  for (const sequence of [1, 2, 3, 4]) await stored("s-4", 1, sequence, sequence);
  await stored("s-4", 2, 1, 4);
  await stored("s-4", 2, 2, 5);
  // Its primary never learned of the second term.
  await stored("s-4", 3, 1, 3);
  const empty = noted({ term: 2, lastSequence: 0, continues: true });
  const { ranges } = await readStoredLog(objects(), "s-4", [noted(), empty], keys);
  expect(ranges).toMatchObject([
    // Its objects behind that restore its own moments.
    { term: 1, firstSequence: 1, lastSequence: 2, tail: { lastSequence: 4, fromTime: 2_000, toTime: 4_000 } },
    { term: 3, firstSequence: 1, lastSequence: 1, continues: true },
  ]);
});

test("a range without later objects is unchanged, and a service without a log has none", async () => {
  for (const sequence of [1, 2]) await stored("s-2", 1, sequence, sequence);
  const range = noted();
  expect(await readStoredLog(objects(), "s-2", [range], keys)).toEqual({ ranges: [range], term: 1 });
  expect(await readStoredLog(objects(), "s-3", [], keys)).toEqual({ ranges: [], term: 0 });
});
