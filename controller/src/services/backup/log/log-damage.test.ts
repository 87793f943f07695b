import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newLogSecrets, sealLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import type { LogRange } from "../archive/archive.ts";
import { newBackupKey, newDataKey, openDataKey } from "../backup-key.ts";
import { holeAt } from "./log-damage.ts";

const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const key = newBackupKey("s-1", "org", sealer, 0);
const dataKey = { keyId: "k-1", ...newDataKey(key, "k-1", sealer) };
const secret = { id: "k-1", secret: openDataKey(key, { id: "k-1", ...dataKey }, sealer) };
const range: LogRange = {
  archiveId: "a-1",
  term: 3,
  firstSequence: 2,
  lastSequence: 8,
  fromTime: 1_500,
  toTime: 8_000,
  keys: [dataKey],
  checkpoints: [],
};
const now = 100_000;
const location = { service: "s-1", term: 3 };

let directory: string;
let objects: ReturnType<typeof createDirectoryStore>;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-damage-"));
  objects = createDirectoryStore(directory);
  for (let sequence = 2; sequence <= 8; sequence += 1) await put(sequence);
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Stores an object whose newest commit is as many seconds after 1970 as its number, unless it has none. */
async function put(sequence: number, { from = sequence, hasCommit = true } = {}): Promise<void> {
  const time = hasCommit ? new Date(sequence * 1_000).toISOString() : "";
  const header = { ...location, sequence, branch: "1", from: `0/${from}`, to: `0/${sequence + 1}`, time };
  await objects.delete(logObject(location, sequence));
  await objects.put(
    logObject(location, sequence),
    (async function* () {
      yield sealLog(Buffer.from("log"), header, secret, newLogSecrets());
    })(),
  );
}
const lose = (...sequences: number[]) =>
  Promise.all(sequences.map((sequence) => objects.delete(logObject(location, sequence))));
const find = (sequence: number) => holeAt("s-1", range, sequence, key, now, { objects, sealer });

test("a reported object that opens and continues the one before is not a hole", async () => {
  expect(await find(2)).toBeUndefined();
  expect(await find(5)).toBeUndefined();
});

test("absent objects beside a lost one are in the hole, which begins at the newest commit before it", async () => {
  await lose(4, 5);
  // The newest commit in object 6 may be one of the lost ones; that in object 7 is not.
  const hole = { firstSequence: 4, lastSequence: 5, from: 3_000, to: 17_000 };
  expect(await find(4)).toEqual(hole);
  expect(await find(5)).toEqual(hole);
});

test("an object without a commit says nothing about time", async () => {
  await put(3, { hasCommit: false });
  await put(7, { hasCommit: false });
  await lose(4, 5);
  expect(await find(4)).toMatchObject({ from: 2_000, to: 18_000 });
});

test("a hole at the end ends now, and one at the beginning begins with the range", async () => {
  await lose(8);
  expect(await find(8)).toEqual({ firstSequence: 8, lastSequence: 8, from: 7_000, to: now });
  await lose(2);
  expect(await find(2)).toEqual({ firstSequence: 2, lastSequence: 2, from: 1_500, to: 14_000 });
});

test("a changed object is a hole, and so is one that does not continue the one before", async () => {
  writeFileSync(join(directory, logObject(location, 5)), randomBytes(400));
  expect(await find(5)).toMatchObject({ firstSequence: 5, lastSequence: 5, from: 4_000 });
  await put(7, { from: 9 });
  expect(await find(7)).toMatchObject({ firstSequence: 7, lastSequence: 7, from: 6_000 });
});

test("a failing store proves nothing", async () => {
  const failing = { ...objects, get: () => Promise.reject(new Error("the store does not respond")) };
  await expect(holeAt("s-1", range, 5, key, now, { objects: failing, sealer })).rejects.toThrow("does not respond");
});
