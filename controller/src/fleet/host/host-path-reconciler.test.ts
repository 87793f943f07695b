import { randomBytes } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../../test/support/controller/etcd.ts";
import { readyHost } from "../../../../test/support/platform/ready-host.ts";
import type { HostPath, Neighbour } from "@holdfast/compute/compute-provider.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject } from "./host.ts";
import { createHostPathWork, neighboursOf } from "./host-path-reconciler.ts";

const own = readyHost("local", { address: "" }, { addressBlock: "10.77" });
const east = readyHost("east", { address: "192.0.2.2:8450" }, { addressBlock: "10.78" });

// biome-ignore format: a table
it.each<[string, HostObject[], Neighbour[]]>([
  ["itself",                                  [east],                                                              []],
  ["the controllers' own, where they are",    [east, own],                                                         [{ hostId: "local", network: "10.77.0.0/16", address: "192.0.2.1" }]],
  ["one that does not answer now",            [readyHost("west", { address: "w:1" }, { addressBlock: "10.79" }, { state: "unreachable" })], [{ hostId: "west", network: "10.79.0.0/16", address: "w" }]],
  ["none that was destroyed",                 [readyHost("west", { destroyedAt: 1 }, { addressBlock: "10.79" })],  []],
  ["none that was not heard of",              [readyHost("west", {}, {}, { facts: null })],                        []],
  ["none whose machines are on its loopback", [readyHost("west")],                                                 []],
])("a host keeps ways to %s", (_, hosts, expected) => {
  expect(neighboursOf("east", hosts, "192.0.2.1")).toEqual(expected);
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

it("a host's object has what is not reached from there, as long as it is not", async () => {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });
  const unit = begin();
  for (const host of [own, east]) unit.create(hostKind, host);
  await hosts.reached(await unit.commit(), 60_000);

  const asked: (readonly Neighbour[])[] = [];
  let answer: HostPath[] = [];
  const keep = async (neighbours: readonly Neighbour[]) => {
    asked.push(neighbours);
    return answer;
  };
  const { reconciler } = createHostPathWork({
    hosts,
    links: {
      all: () => new Map([["east", { paths: { keep } }]]),
      subscribe: () => ({ close() {} }),
    },
    membership: { members: () => [{ address: "" }, { address: "192.0.2.1:8444" }] },
    begin,
  });
  const look = async (told: HostPath[]) => {
    answer = told;
    await reconciler.reconcile("east", AbortSignal.timeout(60_000));
    return (await hosts.fresh("east"))?.object.status.missingPaths;
  };
  const missing = { hostId: "local", problem: "it does not answer." };
  expect(await look([missing, { hostId: "other", problem: "" }])).toEqual([missing]);
  expect(await look([{ ...missing, problem: "" }])).toEqual([]);
  expect(asked[0]).toEqual([{ hostId: "local", network: "10.77.0.0/16", address: "192.0.2.1" }]);
});
