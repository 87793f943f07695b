import { expect, test } from "vitest";
import type { Instance } from "../engine-driver.ts";
import { createDataSize } from "./data-size.ts";

const instance = {} as Instance;

test("a measurement that takes long holds nobody up, goes on once, and its figure comes with a later look", async () => {
  const begun: ((bytes: number) => void)[] = [];
  const size = createDataSize(() => new Promise((resolve) => begun.push(resolve)));
  expect(await size.newest(instance)).toBe(0);
  const later = size.newest(instance);
  expect(begun).toHaveLength(1);
  begun[0]?.(4_096);
  expect(await later).toBe(4_096);
  // As long as it took nine times over, nothing is measured again.
  expect(await size.newest(instance)).toBe(4_096);
  expect(begun).toHaveLength(1);
});

test("a measurement that fails leaves the figure of before", async () => {
  const answers = [() => Promise.resolve(8_192), () => Promise.reject(new Error("the engine stops"))];
  const size = createDataSize(() => (answers.shift() ?? (() => Promise.resolve(1)))());
  expect(await size.newest(instance)).toBe(8_192);
  await expect.poll(async () => (await size.newest(instance)) === 8_192 && answers.length === 0).toBe(true);
});
