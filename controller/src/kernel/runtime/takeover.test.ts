import { setTimeout as delay } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTcpProxy } from "@holdfast/testing/network/tcp-proxy.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createCollection } from "../store/collection.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { keyOf, type Resource } from "../store/resource.ts";
import { Conflict, createUnitOfWork } from "../store/unit-of-work.ts";
import { createControllerRegistry } from "./controller-registry.ts";
import { again, type Reconciler, settled } from "./reconciler.ts";
import { createRunner } from "./runner.ts";
import { createShards } from "./shards.ts";
import { defineKind } from "../store/kind.ts";

/** A counter that its owner increments until it has its target. */
type Counter = Resource<object, { count: number }>;
const counterKind = defineKind<Counter>("machine");

let etcd: TestEtcd;
beforeAll(async () => {
  etcd = await startTestEtcd();
});
afterAll(() => etcd?.stop());

/** Keys that a controller works on under a lease that has not ended. Two controllers must not work on one key. */
const working = new Map<string, AbortSignal>();
const overlaps: string[] = [];
const same = (text: string) => text;
const sealer = { seal: same, sealDeterministic: same, open: same, keyedHash: () => "" };

/** `target` of all counters. */
async function startController(id: string, target: () => number) {
  const proxy = await startTcpProxy(etcd.port);
  const store = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  const deps = { store, clock: systemClock, log: silentLog };
  const counters = createCollection(store, counterKind);
  const controllerRegistry = createControllerRegistry({ ...deps, id, leaseS: 2 });
  await controllerRegistry.announce(`${id}:1`);
  const shards = createShards({ ...deps, controllerRegistry, cache: counters });
  /** Units of work in progress, and committed ones. */
  const units = { running: 0, committed: 0 };
  const reconciler: Reconciler = {
    name: "counter",
    async reconcile(key, signal) {
      if (working.get(key)?.aborted === false) overlaps.push(key);
      working.set(key, signal);
      try {
        const counter = counters.get(key);
        if (counter === undefined || counter.object.status.count >= target()) return settled;
        // Time: the length of a unit of work, which a takeover interrupts.
        await delay(5, undefined, { signal });
        const unit = createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });
        const count = counter.object.status.count + 1;
        unit.update(counterKind, counter, { ...counter.object, status: { count } });
        units.running += 1;
        await unit.commit(signal).finally(() => (units.running -= 1));
        units.committed += 1;
        return again(10, "counting");
      } finally {
        if (working.get(key) === signal) working.delete(key);
      }
    },
  };
  await counters.ready;
  const runner = createRunner({
    loops: [
      {
        reconciler,
        keys: () => [...counters.values()].map(({ object }) => object.metadata.id),
        subscribe: counters.subscribe,
        inputs: (key) => counters.get(key)?.modRevision ?? 0n,
      },
    ],
    ownership: shards,
    clock: systemClock,
    log: silentLog,
    random: Math.random,
  });
  runner.start();
  return {
    controllerRegistry,
    shards,
    counters,
    units,
    cut: proxy.cut,
    async stop() {
      await runner.stop();
      shards.close();
      counters.close();
      await controllerRegistry.leave().catch(() => undefined);
      await store.close();
      proxy.close();
    },
  };
}

test("each object has one owner at a time while controllers and etcd come and go", async () => {
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const ids = Array.from({ length: 24 }, () => uuidv7());
  for (const id of ids) {
    const metadata = { id, name: id, organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 };
    const counter: Counter = { metadata, spec: {}, status: { count: 0 } };
    const puts = [{ key: keyOf(counterKind, id), value: JSON.stringify(counter) }];
    await store.commit({ conditions: [], puts, deletes: [] });
  }
  // The work ends with the test, so that each change of the owners interrupts it.
  let target = Number.POSITIVE_INFINITY;
  const start = (id: string) => startController(id, () => target);
  const first = await start("1");
  await until(() => first.units.committed >= ids.length);
  const [second, third] = [await start("2"), await start("3")];
  const all = [first, second, third];
  const before = first.units.committed;
  await until(() => all.every(({ units }) => units.committed > 0) && first.units.committed > before);
  await first.controllerRegistry.drain();
  await expect.poll(() => ids.filter((id) => first.shards.owns(id))).toEqual([]);
  await first.stop();
  second.cut();
  await until(() => second.units.running > 0);
  await etcd.kill();
  await etcd.start();
  await expect.poll(() => ids.every((id) => third.shards.owns(id)), { timeout: 120_000 }).toBe(true);
  const counts = () => ids.map((id) => third.counters.get(id)?.object.status.count ?? 0);
  target = Math.max(...counts()) + 20;
  await expect.poll(counts, { timeout: 120_000 }).toEqual(ids.map(() => target));
  expect(overlaps).toEqual([]);
  await Promise.all([second.stop(), third.stop(), store.close()]);
});

test("a change from before a suspend is not written over another controller's", async () => {
  let suspendedMs = 0;
  const sleeper = createEtcdStore({
    hosts: [etcd.url],
    log: silentLog,
    bootMs: () => performance.now() + suspendedMs,
  });
  const other = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const outbox = { admit() {} };
  const unitOf = (store: typeof other) => createUnitOfWork(store, { outbox, sealer, clock: systemClock, ids: uuidv7 });
  const id = uuidv7();
  const metadata = { id, name: id, organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 };
  const counter: Counter = { metadata, spec: {}, status: { count: 0 } };
  await other.commit({
    conditions: [],
    puts: [{ key: keyOf(counterKind, id), value: JSON.stringify(counter) }],
    deletes: [],
  });
  const lease = await sleeper.lease(2);
  const counters = createCollection(sleeper, counterKind);
  await counters.ready;
  const before = counters.get(id);
  if (before === undefined) throw new Error("the counter is not there");
  const late = unitOf(sleeper);
  late.update(counterKind, before, { ...counter, status: { count: 99 } });

  suspendedMs = 31_000;
  const takenOver = unitOf(other);
  takenOver.update(counterKind, before, { ...counter, status: { count: 1 } });
  await takenOver.commit(AbortSignal.timeout(60_000));
  expect(lease.live).toBe(false);
  await expect(late.commit(AbortSignal.timeout(60_000))).rejects.toThrow(Conflict);
  // etcd gets no further renewal, and accepts no writes under the expired lease.
  const announced = { conditions: [], puts: [{ key: "/late", value: "x", lease }], deletes: [] };
  await expect
    .poll(() => sleeper.commit(announced).then(() => "written", String), { timeout: 10_000 })
    .toContain("lease not found");
  expect((await other.get(keyOf(counterKind, id)))?.value).toContain('"count":1');
  expect(await other.get("/late")).toBeUndefined();
  counters.close();
  await Promise.all([sleeper.close(), other.close()]);
});
