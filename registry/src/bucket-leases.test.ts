import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { setImmediate as nextImmediate } from "node:timers/promises";
import { type BucketLeases, type BucketLeasesDeps, createBucketLeases } from "./bucket-leases.ts";

type LeaseObjects = BucketLeasesDeps["objects"];
type Call = "put" | "get" | "list" | "delete";

const times = { renewUseMs: 20, deadUseMs: 100_000, checkMs: 10, validMs: 2_000, deadSweepMs: 5_000 };
const { signal } = new AbortController();
let directory: string;
let objects: ObjectStore;
let now: number;
let opened: BucketLeases[];
let releases: (() => void)[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "bucket-leases-"));
  objects = createDirectoryStore(directory);
  now = 1_000_000;
  [opened, releases] = [[], []];
});
afterEach(async () => {
  for (const release of releases) release();
  // A lease that is being renewed is written first.
  await Promise.all(opened.map((each) => each.leave()));
  await rm(directory, { recursive: true, force: true });
});

function leases(id: string, store: LeaseObjects = objects, wait?: BucketLeasesDeps["wait"]): BucketLeases {
  const timer = wait === undefined ? {} : { wait };
  const opening = createBucketLeases({ objects: store, id, now: () => now, ...timer, log: silentLog, times });
  opened.push(opening);
  return opening;
}

/** Timers, each of which fires when the test says so. */
function manualTimers() {
  const waiting: { readonly ms: number; readonly fire: () => void }[] = [];
  return {
    waiting,
    wait: (ms: number, aborting?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const timer = {
          ms,
          fire() {
            const index = waiting.indexOf(timer);
            if (index !== -1) waiting.splice(index, 1);
            resolve();
          },
        };
        if (aborting?.aborted) return resolve();
        aborting?.addEventListener("abort", timer.fire, { once: true });
        waiting.push(timer);
      }),
  };
}

/** The store, in which calls of a kind wait, after `hold`, until they are released. */
function pausableStore() {
  const paused = new Map<string, { readonly reached: () => void; readonly released: Promise<void> }>();
  const calls: string[] = [];
  async function pass(call: Call, key: string): Promise<void> {
    calls.push(`${call} ${key}`);
    const found = paused.get(`${call} ${key}`);
    paused.delete(`${call} ${key}`);
    found?.reached();
    await found?.released;
  }
  const store: LeaseObjects = {
    put: (key, ...rest) => pass("put", key).then(() => objects.put(key, ...rest)),
    get: (key, ...rest) => pass("get", key).then(() => objects.get(key, ...rest)),
    list: (prefix, page) => pass("list", prefix).then(() => objects.list(prefix, page)),
    delete: (key) => pass("delete", key).then(() => objects.delete(key)),
  };
  return {
    store,
    /** All calls, in the order of their begin. */
    calls,
    /** Holds the next such call; `reached` resolves once it waits. */
    hold(call: Call, key: string) {
      const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      paused.set(`${call} ${key}`, { reached: reached.resolve, released: released.promise });
      releases.push(released.resolve);
      return { reached: reached.promise, release: released.resolve };
    },
  };
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

test.each([
  ["list", "leases/use/"],
  ["put", "leases/sweep/a"],
  ["get", "leases/sweep/a"],
] as const)("a check of a sweep that waits for the store (%s) permits nothing after the sweep", async (call, key) => {
  const { store, hold } = pausableStore();
  const first = leases("a", store);
  const release = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const sweeping = first.sweep(async () => {
    started.resolve();
    await release.promise;
  }, signal);
  await started.promise;
  const check = hold(call, key);
  await check.reached;
  release.resolve();
  await waitUntil("the work has ended", async () => !first.maySweep());
  check.release();
  expect(await sweeping).toBe(true);
  expect([first.maySweep(), first.isSweeping()]).toEqual([false, false]);
  expect(await keys()).toEqual([]);
});

test.each([
  ["renewal", async () => undefined],
  ["entry", (first: BucketLeases) => first.enter()],
])("a use is left only once its %s has ended, and has no concurrent renewals", async (_, enterAgain) => {
  const { store, hold, calls } = pausableStore();
  const { wait, waiting } = manualTimers();
  const first = leases("a", store, wait);
  await first.enter();
  // From then on, an entry writes the lease again.
  now += times.deadUseMs / 2;
  const writing = hold("put", "leases/use/a");
  calls.splice(0);
  const entering = enterAgain(first);
  for (let tick = 0; tick < 5; tick += 1) {
    // A timer that fires is no longer in the list.
    while (waiting.length > 0) waiting[0]?.fire();
    await nextImmediate();
  }
  await writing.reached;
  expect(calls).toEqual(["put leases/use/a"]);
  let isLeft = false;
  const leaving = first.leave().then(() => {
    isLeft = true;
  });
  expect(await keys()).toEqual(["leases/use/a"]);
  expect(isLeft).toBe(false);
  writing.release();
  await Promise.all([entering, leaving]);
  expect(await keys()).toEqual([]);
  expect(waiting).toEqual([]);
});

test("a use without a renewal for long is entered again, and waits for a sweep that took it for ended", async () => {
  const { store, hold } = pausableStore();
  const [first, second] = [leases("a", store), leases("b")];
  await first.enter();
  const renewal = hold("put", "leases/use/a");
  await renewal.reached;
  expect(await second.sweep(async () => expect.unreachable(), signal)).toBe(false);
  now += times.deadUseMs;
  let isEntered = false;
  let entering: Promise<void> | undefined;
  const sweeping = second.sweep(async (aborted) => {
    entering = first.enter().then(() => {
      isEntered = true;
    });
    renewal.release();
    await new Promise((resolve) => aborted.addEventListener("abort", resolve, { once: true }));
    expect(isEntered).toBe(false);
  }, signal);
  await sweeping;
  await entering;
  expect(await keys()).toEqual(["leases/use/a"]);
});

/** Random numbers below a limit, the same for each seed. */
function randomOf(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))(
  "no registry may sweep while another is in use, in any order of the store's calls (seed %i)",
  async (seed) => {
    const random = randomOf(seed + 1);
    const stored = new Map<string, Buffer>();
    const waiting: (() => void)[] = [];
    /** Each call has its effect at a random time, and its caller reads the result at another one. */
    async function call<T>(effect: () => T): Promise<T> {
      await new Promise<void>((resolve) => waiting.push(resolve));
      const result = effect();
      await new Promise<void>((resolve) => waiting.push(resolve));
      return result;
    }
    const factsOf = (key: string) => ({ key, sizeBytes: 1, modifiedAt: 0 });
    const store: LeaseObjects = {
      async put(key, body) {
        const parts: Uint8Array[] = [];
        for await (const part of body) parts.push(part);
        return call(() => {
          stored.set(key, Buffer.concat(parts));
          return factsOf(key);
        });
      },
      async get(key) {
        const content = await call(() => stored.get(key));
        if (content === undefined) return undefined;
        return (async function* () {
          yield content;
        })();
      },
      list: (prefix) =>
        call(() => ({
          objects: [...stored.keys()].filter((key) => key.startsWith(prefix)).map(factsOf),
          more: false,
        })),
      delete: (key) =>
        call(() => {
          stored.delete(key);
        }),
    };
    const fast = { renewUseMs: 1, deadUseMs: 20_000, checkMs: 1, validMs: 1_000, deadSweepMs: 4_000 };
    const { wait, waiting: timers } = manualTimers();
    const registries = ["a", "b", "c"].map((id) => ({
      leases: createBucketLeases({ objects: store, id, now: () => now, wait, log: silentLog, times: fast }),
      isInUse: false,
    }));
    const end = new AbortController();
    const checkAll = () => {
      for (const each of registries)
        for (const other of registries)
          expect(other !== each && each.leases.maySweep() && other.isInUse, `at ${now}`).toBe(false);
    };
    let [used, swept] = [0, 0];
    const pausedLives: { count: number; readonly resolve: () => void }[] = [];
    const steps = (count: number) => new Promise<void>((resolve) => pausedLives.push({ count, resolve }));
    async function live(each: (typeof registries)[number]): Promise<void> {
      while (!end.signal.aborted) {
        if (random(4) === 0) {
          await each.leases.enter();
          each.isInUse = true;
          used += 1;
          await steps(random(20));
          each.isInUse = false;
          await steps(random(20));
          await each.leases.leave();
        } else {
          await each.leases.sweep(async (aborted) => {
            swept += 1;
            for (let count = random(40); count > 0 && !aborted.aborted; count -= 1) await steps(1);
          }, end.signal);
        }
        await steps(random(random(3) === 0 ? 300 : 10));
      }
    }
    const lives = Promise.all(registries.map(live));
    let isEnded = false;
    void lives.finally(() => {
      isEnded = true;
    });
    for (let step = 0; !isEnded; step += 1) {
      if (step === 1_000) end.abort();
      now += random(40) === 0 ? random(6_000) : random(60);
      const index = random(waiting.length);
      for (const resolve of waiting.splice(index, 1)) resolve();
      for (const each of pausedLives.splice(0)) {
        each.count -= 1;
        if (each.count < 0) each.resolve();
        else pausedLives.push(each);
      }
      if (random(3) === 0) timers[random(timers.length)]?.fire();
      await nextImmediate();
      checkAll();
    }
    await lives;
    for (const { leases: each } of registries) each.close();
    expect(Math.min(used, swept), "uses and sweeps").toBeGreaterThan(0);
  },
);
