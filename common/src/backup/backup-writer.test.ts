import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createBackupWriter } from "./backup-writer.ts";

const location = { service: "s-1", backup: "b-1", attempt: 1 };
const key = { id: "k1", secret: randomBytes(32) };
const [partBytes, chunkBytes, streamBytes] = [100_000, 10_000, 2_000_000];
const names = ["base.tar", "base.tar.map", "dump-1", "dump-2", "dump-3"];

test("a stalled store pauses the sources, with a bounded number of parts in memory", async () => {
  let read = 0;
  async function* source() {
    for (let at = 0; at < streamBytes; at += chunkBytes) {
      read += chunkBytes;
      yield randomBytes(chunkBytes);
    }
  }
  const opened = Promise.withResolvers<void>();
  const writer = createBackupWriter({ location, key, partBytes, put: () => opened.promise });
  const writing = Promise.all(names.map((name) => writer.write({ name, member: "n-1", bytes: source() })));
  await expect.poll(() => read).toBeGreaterThanOrEqual(3 * partBytes);
  let before = -1;
  while (read > before) {
    before = read;
    // A writer that does not wait for the store reads more within this time.
    await sleep(200);
  }
  // Three sealed parts, three pieces that are read or compressed, and the next piece of each stream.
  expect(read).toBeLessThanOrEqual(6 * partBytes + names.length * chunkBytes);
  opened.resolve();
  expect((await writing).map(({ bytes }) => bytes)).toEqual(names.map(() => streamBytes));
});

test("a failed put fails the stream with the same error", async () => {
  let read = 0;
  async function* endless() {
    for (;;) {
      read += chunkBytes;
      yield randomBytes(chunkBytes);
      // A put fails between two pieces of the source.
      await sleep(1);
    }
  }
  const put = async (object: string) => {
    if (object.endsWith("000003")) throw new Error("the store is full");
  };
  const writer = createBackupWriter({ location, key, partBytes, put });
  await expect(writer.write({ name: "dump", member: "n-1", bytes: endless() })).rejects.toThrow("the store is full");
  expect(read).toBeLessThan(12 * partBytes);
});
