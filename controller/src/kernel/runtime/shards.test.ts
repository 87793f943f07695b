import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTcpProxy } from "@holdfast/testing/network/tcp-proxy.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { type Collection, createCollection } from "../store/collection.ts";
import { keyOf, type Resource, root } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import { createControllerRegistry, type ControllerRegistry } from "./controller-registry.ts";
import { shardOwnerOf, shardCount, shardOf } from "./ownership.ts";
import { createShards, type Shards } from "./shards.ts";
import { defineKind } from "../store/kind.ts";

const counterKind = defineKind("machine");

let etcd: TestEtcd;
const running: Controller[] = [];
/** Keys that had two owners at the same time. Checked during the whole test; it must remain empty. */
const twice: string[] = [];
let checking: NodeJS.Timeout;

interface Controller {
  readonly id: string;
  readonly controllerRegistry: ControllerRegistry;
  readonly shards: Shards;
  readonly memory: Collection<Resource<unknown, unknown>>;
  /** Cuts the controller's connection to etcd, as if it were killed or isolated; its state in memory remains. */
  cut(): void;
  heal(): void;
  stop(): Promise<void>;
}

beforeAll(async () => {
  etcd = await startTestEtcd();
  checking = setInterval(() => {
    for (const key of keys) {
      const owners = running.filter(({ shards }) => shards.owns(key)).map(({ id }) => id);
      if (owners.length > 1) twice.push(`${key}: ${owners.join()}`);
    }
  }, 2);
});
afterAll(async () => {
  clearInterval(checking);
  await Promise.all(running.map((controller) => controller.stop()));
  await etcd?.stop();
});

/** One key of each shard. */
const keys = Array.from({ length: 1_000 }, (_, i) => `key ${i}`).filter(
  (key, index, all) => all.findIndex((other) => shardOf(other) === shardOf(key)) === index,
);

/** `deaf`: the response to its first claim is lost. `memoryPort`: port at which its collection reads etcd. */
async function startController(
  id: string,
  { listens = true, deaf = false, memoryPort = etcd.port } = {},
): Promise<Controller> {
  const proxy = await startTcpProxy(etcd.port);
  const read = createEtcdStore({ hosts: [`http://127.0.0.1:${memoryPort}`], log: silentLog });
  const memory = createCollection(read, counterKind);
  const full = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  let loses = deaf;
  const store: Store = {
    ...full,
    async commit(transaction, signal) {
      const done = await full.commit(transaction, signal);
      if (!loses || !transaction.puts.some(({ key }) => key.includes("/shard/"))) return done;
      loses = false;
      throw new Error("the answer was lost");
    },
  };
  const deps = { store, log: silentLog, clock: systemClock };
  const controllerRegistry = createControllerRegistry({ ...deps, id, leaseS: 4 });
  if (listens) await controllerRegistry.announce(`${id}:1`);
  const shards = createShards({ ...deps, controllerRegistry, cache: memory });
  const controller = {
    id,
    controllerRegistry,
    shards,
    memory,
    cut: proxy.cut,
    heal: proxy.heal,
    async stop() {
      running.splice(running.indexOf(controller), 1);
      shards.close();
      await controllerRegistry.leave().catch(() => undefined);
      await Promise.all([store.close(), read.close()]);
      proxy.close();
    },
  };
  running.push(controller);
  return controller;
}

const everyKeyIsOwned = () => keys.every((key) => running.some(({ shards }) => shards.owns(key)));
/** Number of owned shards: each shard has one key. */
const ownedCount = (shards: Shards) => keys.filter((key) => shards.owns(key)).length;
/** True if no shard is moving. */
const isBalanced = () => {
  const ids = running.map(({ id }) => id);
  return keys.every((key) => {
    const owner = shardOwnerOf(shardOf(key), ids);
    return running.some(({ id, shards }) => id === owner && shards.owns(key));
  });
};

test("every shard has a key in these tests, and controllers share them evenly", () => {
  expect(keys).toHaveLength(shardCount);
  const members = ["a", "b", "c"];
  const owners = Array.from({ length: shardCount }, (_, shard) => shardOwnerOf(shard, members));
  for (const member of members) expect(owners.filter((owner) => owner === member).length).toBeGreaterThan(4);
  const without = Array.from({ length: shardCount }, (_, shard) => shardOwnerOf(shard, ["a", "b"]));
  expect(without.every((owner, shard) => owners[shard] === "c" || owner === owners[shard])).toBe(true);
  expect(shardOwnerOf(1, [])).toBeUndefined();
});

test("each key has at most one of three controllers as its owner at all times", async () => {
  const first = await startController("1");
  await until(() => ownedCount(first.shards) === shardCount);
  const right = first.shards.begin(keys[0] ?? "");
  expect(right?.claim?.modRevision).toBeGreaterThan(0n);
  right?.end();
  const others = [await startController("2"), await startController("3")];
  await until(() => everyKeyIsOwned() && others.every(({ shards }) => ownedCount(shards) > 4));
  expect(
    first.controllerRegistry
      .controllers()
      .map(({ id }) => id)
      .toSorted(),
  ).toEqual(["1", "2", "3"]);
  expect(twice).toEqual([]);
});

test("a controller that does not listen yet owns no shard, and blocks none", async () => {
  await until(isBalanced);
  const starting = await startController("starting", { listens: false });
  await until(() => running.every(({ controllerRegistry }) => controllerRegistry.controller("starting") !== undefined));
  const owned = keys.map((key) => running.find(({ shards }) => shards.owns(key))?.id);
  await starting.controllerRegistry.announce("starting:1");
  await until(() => everyKeyIsOwned() && ownedCount(starting.shards) > 4);
  expect(owned).not.toContain("starting");
  expect(owned).not.toContain(undefined);
  await starting.stop();
  await until(everyKeyIsOwned);
});

test("a committed claim whose response was lost is adopted", async () => {
  const deaf = await startController("deaf", { deaf: true });
  await until(() => everyKeyIsOwned() && ownedCount(deaf.shards) > 4);
  expect(twice).toEqual([]);
  await deaf.stop();
  await until(everyKeyIsOwned);
});

test("work on a shard begins after the new owner has loaded all earlier writes", async () => {
  const line = await startTcpProxy(etcd.port);
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const write = async (name: string) => {
    const metadata = { id: "m", name, organizationId: "", generation: 1, createdAt: 0, updatedAt: 0 };
    const value = JSON.stringify({ metadata, spec: {}, status: {} });
    await store.commit({ conditions: [], puts: [{ key: keyOf(counterKind, "m"), value }], deletes: [] });
  };
  await write("as it was");
  const behind = await startController("behind", { listens: false, memoryPort: line.port });
  await behind.memory.ready;
  line.cut();
  await write("as it is");
  const known = () => behind.memory.get("m")?.object.metadata.name;
  const early: string[] = [];
  const looking = setInterval(() => {
    if (ownedCount(behind.shards) > 0 && known() !== "as it is")
      early.push(`${ownedCount(behind.shards)} with ${known()}`);
  }, 2);
  await behind.controllerRegistry.announce("behind:1");
  await until(async () => {
    const { values } = await store.list(`${root}/shard/`, { limit: 100 });
    return values.filter(({ value }) => (JSON.parse(value) as { owner: string }).owner === "behind").length > 4;
  });
  line.heal();
  await until(() => everyKeyIsOwned() && ownedCount(behind.shards) > 4);
  clearInterval(looking);
  expect(early).toEqual([]);
  expect(twice).toEqual([]);
  await behind.stop();
  await store.close();
  line.close();
  await until(everyKeyIsOwned);
});

test("a shard moves only after the work on it has ended", async () => {
  const first = running[0];
  if (first === undefined) throw new Error("it runs");
  const key = keys.find((candidate) => first.shards.owns(candidate)) ?? "";
  const right = first.shards.begin(key);
  await first.controllerRegistry.drain();
  await until(() => right?.signal.aborted === true);
  const rest = keys.filter((other) => other !== key);
  await until(() => rest.every((other) => running.some(({ shards }) => shards.owns(other))));
  expect(ownedCount(first.shards)).toBe(0);
  expect(running.filter(({ shards }) => shards.owns(key))).toEqual([]);
  right?.end();
  await until(everyKeyIsOwned);
  expect(ownedCount(first.shards)).toBe(0);
  expect(twice).toEqual([]);
  await first.stop();
});

test("an isolated controller stops before another takes over, and returns with a new lease", async () => {
  const victim = running[0];
  if (victim === undefined) throw new Error("it runs");
  const key = keys.find((candidate) => victim.shards.owns(candidate)) ?? "";
  const right = victim.shards.begin(key);
  const before = victim.controllerRegistry.lease()?.id;
  victim.cut();
  await until(() => right?.signal.aborted === true);
  expect(ownedCount(victim.shards)).toBe(0);
  right?.end();
  await until(everyKeyIsOwned);
  victim.heal();
  await until(() => ownedCount(victim.shards) > 4);
  expect(victim.controllerRegistry.lease()?.id).not.toBe(before);
  expect(twice).toEqual([]);
});

test("every key has an owner again after an outage of etcd longer than the lease", async () => {
  await etcd.kill();
  await until(() => running.every(({ shards }) => ownedCount(shards) === 0));
  await etcd.start();
  await until(everyKeyIsOwned);
  expect(twice).toEqual([]);
});
