import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BucketLeases, createBucketLeases } from "./bucket-leases.ts";

const times = { renewUseMs: 20, deadUseMs: 100_000, checkMs: 10, validMs: 2_000, deadSweepMs: 5_000 };
const { signal } = new AbortController();
let directory: string;
let objects: ObjectStore;
let now: number;
let opened: BucketLeases[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "bucket-leases-"));
  objects = createDirectoryStore(directory);
  now = 1_000_000;
  opened = [];
});
afterEach(async () => {
  // A lease that is being renewed is written first.
  await Promise.all(opened.map((each) => each.leave()));
  await rm(directory, { recursive: true, force: true });
});

function leases(id: string): BucketLeases {
  const opening = createBucketLeases({ objects, id, now: () => now, log: silentLog, times });
  opened.push(opening);
  return opening;
}

const keys = async () => (await objects.list("leases/", { limit: 10 })).objects.map(({ key }) => key);

test("one sweeps while no other uses the bucket, and may delete only in its sweep", async () => {
  const [first, second] = [leases("a"), leases("b")];
  await first.enter();
  expect(await second.sweep(async () => expect.unreachable(), signal)).toBe(false);
  await first.leave();
  const swept = second.sweep(async () => {
    expect(second.maySweep()).toBe(true);
    expect(await first.sweep(async () => expect.unreachable(), signal)).toBe(false);
    expect(second.maySweep()).toBe(true);
  }, signal);
  expect(await swept).toBe(true);
  expect(second.maySweep()).toBe(false);
  expect(await keys()).toEqual([]);
});

test("a use ends a sweep, and begins only once that has ended", async () => {
  const [first, second] = [leases("a"), leases("b")];
  const started = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  let isAborted = false;
  const sweeping = second.sweep(async (aborted) => {
    started.resolve();
    await new Promise((resolve) => aborted.addEventListener("abort", resolve, { once: true }));
    isAborted = true;
    expect(second.maySweep()).toBe(false);
    await release.promise;
    aborted.throwIfAborted();
  }, signal);
  await started.promise;
  let isEntered = false;
  const entering = first.enter().then(() => {
    isEntered = true;
  });
  await waitUntil("the sweep is aborted", async () => isAborted);
  expect(isEntered).toBe(false);
  release.resolve();
  expect(await sweeping).toBe(false);
  await entering;
  expect(await keys()).toEqual(["leases/use/a"]);
});

test("a sweep that was paused deletes nothing once a use has taken it for ended", async () => {
  const [first, second] = [leases("a"), leases("b")];
  const started = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  // Its own checks fail, as those of a process that is paused.
  const own = { ...objects, get: objects.get.bind(objects) };
  let isPaused = false;
  own.list = (...args) => (isPaused ? new Promise(() => undefined) : objects.list(...args));
  const paused = createBucketLeases({ objects: own, id: "c", now: () => now, log: silentLog, times });
  void paused.sweep(async () => {
    isPaused = true;
    started.resolve();
    await release.promise;
  }, signal);
  await started.promise;
  const entering = first.enter();
  await waitUntil("the use waits", async () => (await keys()).length === 2);
  now += times.validMs;
  expect(paused.maySweep()).toBe(false);
  now += times.deadSweepMs;
  await entering;
  expect(await keys()).toEqual(["leases/use/a"]);
  expect(await second.sweep(async () => expect.unreachable(), signal)).toBe(false);
});

test("the use of a registry that was killed ends after a time without a renewal", async () => {
  const [first, second] = [leases("a"), leases("b")];
  await first.enter();
  first.close();
  expect(await second.sweep(async () => expect.unreachable(), signal)).toBe(false);
  now += times.deadUseMs;
  expect(await second.sweep(async () => undefined, signal)).toBe(true);
  expect(await keys()).toEqual([]);
});
