import { randomBytes } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import type { HostRoute, OtherHost } from "@holdfast/compute/compute-provider.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject } from "./host.ts";
import { createHostRouteWork, adjacentOf } from "./host-route-reconciler.ts";

const own = readyHost("local", { address: "" }, { addressBlock: "10.77" });
const east = readyHost("east", { address: "192.0.2.2:8450" }, { addressBlock: "10.78" });

// biome-ignore format: a table
it.each<[string, HostObject[], OtherHost[]]>([
  ["itself",                                  [east],                                                              []],
  ["the controllers' own, at their address", [east, own],                                                         [{ hostId: "local", network: "10.77.0.0/16", address: "192.0.2.1" }]],
  ["an unreachable host",                     [readyHost("west", { address: "w:1" }, { addressBlock: "10.79" }, { state: "unreachable" })], [{ hostId: "west", network: "10.79.0.0/16", address: "w" }]],
  ["no destroyed host",                       [readyHost("west", { destroyedAt: 1 }, { addressBlock: "10.79" })],  []],
  ["no host that has not connected",          [readyHost("west", {}, {}, { facts: null })],                        []],
  ["no host with loopback addresses",        [readyHost("west")],                                                 []],
])("a host maintains routes to %s", (_, hosts, expected) => {
  expect(adjacentOf("east", hosts, "192.0.2.1")).toEqual(expected);
});

let etcd: TestEtcd;
let store: Store;
let hosts: Collection<HostObject>;
beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  hosts = createCollection(store, hostKind);
  await hosts.ready;
});
afterAll(async () => {
  hosts?.close();
  await store?.close();
  await etcd?.stop();
});

it("a host's status lists the routes that do not work, while they do not", async () => {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });
  const unit = begin();
  for (const host of [own, east]) unit.create(hostKind, host);
  await hosts.untilRevision(await unit.commit(), 60_000);

  const requests: (readonly OtherHost[])[] = [];
  let answer: HostRoute[] = [];
  const keep = async (adjacent: readonly OtherHost[]) => {
    requests.push(adjacent);
    return answer;
  };
  const { reconciler } = createHostRouteWork({
    hosts,
    links: {
      all: () => new Map([["east", { routes: { apply: keep } }]]),
      subscribe: () => ({ close() {} }),
    },
    controllerRegistry: { controllers: () => [{ address: "" }, { address: "192.0.2.1:8444" }] },
    begin,
  });
  const look = async (results: HostRoute[]) => {
    answer = results;
    await reconciler.reconcile("east", AbortSignal.timeout(60_000));
    return (await hosts.getCurrent("east"))?.object.status.missingPaths;
  };
  const missing = { hostId: "local", problem: "it does not answer." };
  expect(await look([missing, { hostId: "other", problem: "" }])).toEqual([missing]);
  expect(await look([{ ...missing, problem: "" }])).toEqual([]);
  expect(requests[0]).toEqual([{ hostId: "local", network: "10.77.0.0/16", address: "192.0.2.1" }]);
});
