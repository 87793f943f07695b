import { expect, test } from "vitest";
import type { Instance } from "../engine-driver.ts";
import { createDataSize } from "./data-size.ts";

const instance = {} as Instance;

test("a slow measurement delays no caller, runs once, and is returned by a later call", async () => {
  const started: ((bytes: number) => void)[] = [];
  const size = createDataSize(() => new Promise((resolve) => started.push(resolve)));
  expect(await size.newest(instance)).toBe(0);
  const later = size.newest(instance);
  expect(started).toHaveLength(1);
  started[0]?.(4_096);
  expect(await later).toBe(4_096);
  // The next measurement starts after a pause of nine times the duration.
  expect(await size.newest(instance)).toBe(4_096);
  expect(started).toHaveLength(1);
});

test("a failed measurement leaves the previous size", async () => {
  const answers = [() => Promise.resolve(8_192), () => Promise.reject(new Error("the engine stops"))];
  const size = createDataSize(() => (answers.shift() ?? (() => Promise.resolve(1)))());
  expect(await size.newest(instance)).toBe(8_192);
  await expect.poll(async () => (await size.newest(instance)) === 8_192 && answers.length === 0).toBe(true);
});
