import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createBackupWriter } from "./backup-writer.ts";

const location = { service: "s-1", backup: "b-1", attempt: 1 };
const key = { id: "k1", secret: randomBytes(32) };
const [partBytes, chunkBytes, streamBytes] = [100_000, 10_000, 2_000_000];
const names = ["base.tar", "base.tar.map", "dump-1", "dump-2", "dump-3"];

test("a stalled store pauses the sources, with a bounded number of parts in memory", async () => {
  let read = 0;
  let stored = 0;
  let most = 0;
  async function* source() {
    for (let at = 0; at < streamBytes; at += chunkBytes) {
      read += chunkBytes;
      most = Math.max(most, read - stored);
      yield randomBytes(chunkBytes);
    }
  }
  // Each part is stored when its upload is the third that waits, or the last of all.
  const uploads: (() => void)[] = [];
  const put = () => new Promise<void>((resolve) => uploads.push(resolve));
  const writer = createBackupWriter({ location, key, partBytes, put });
  let isDone = false;
  const writing = Promise.all(names.map((name) => writer.write({ name, member: "n-1", bytes: source() }))).finally(
    () => (isDone = true),
  );
  const isStalled = () => uploads.length >= 3 || (read === names.length * streamBytes && uploads.length > 0);
  while (!isDone) {
    if (isStalled()) {
      stored += partBytes;
      uploads.shift()?.();
    }
    await nextTurn();
  }
  // Three sealed parts, three pieces that are read or compressed, and the next piece of each stream.
  expect(most).toBeLessThanOrEqual(6 * partBytes + names.length * chunkBytes);
  expect(most).toBeGreaterThanOrEqual(3 * partBytes);
  expect((await writing).map(({ bytes }) => bytes)).toEqual(names.map(() => streamBytes));
});

test("a failed put fails the stream with the same error", async () => {
  let read = 0;
  async function* endless() {
    for (;;) {
      read += chunkBytes;
      yield randomBytes(chunkBytes);
      // A put fails between two pieces of the source.
      await nextTurn();
    }
  }
  const put = async (object: string) => {
    if (object.endsWith("000003")) throw new Error("the store is full");
  };
  const writer = createBackupWriter({ location, key, partBytes, put });
  await expect(writer.write({ name: "dump", member: "n-1", bytes: endless() })).rejects.toThrow("the store is full");
  expect(read).toBeLessThan(12 * partBytes);
});
