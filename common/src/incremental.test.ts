import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { expect, test } from "vitest";
import { concatIncrementally, groupsBySize, incrementBytes } from "./incremental.ts";

test("parts are concatenated while the event loop continues", async () => {
  const parts = [0, 1, incrementBytes - 1, 3 * incrementBytes + 1].map((size, n) => new Uint8Array(size).fill(n));
  let iterations = 0;
  let isFinished = false;
  const others = (async () => {
    while (!isFinished) {
      await yieldToEventLoop();
      iterations += 1;
    }
  })();
  const joined = await concatIncrementally(parts);
  isFinished = true;
  await others;
  expect(Buffer.from(joined).equals(Buffer.concat(parts))).toBe(true);
  expect(joined.buffer.byteLength).toBe(joined.byteLength);
  expect(iterations).toBeGreaterThanOrEqual(3);
  expect(await concatIncrementally([])).toHaveLength(0);
});

test("groups keep the order and are bounded in bytes, except for a single large item", () => {
  const half = incrementBytes / 2;
  expect(groupsBySize([half, half, 1, 3 * half, 1], (bytes) => bytes)).toEqual([[half, half], [1], [3 * half], [1]]);
  expect(groupsBySize([], () => 1)).toEqual([]);
});
