import { randomBytes } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { HostUnreachable } from "@holdfast/compute/compute-failure.ts";
import { readyHost, rootedTier, testHostFacts } from "@holdfast/testing/platform/ready-host.ts";
import type { HostFacts, RootStorage } from "@holdfast/compute/local/host-facts.ts";
import { machineKind, type MachineObject } from "../machine/machine.ts";
import { createRunner, type Runner } from "#kernel/runtime/runner.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, newHost, withHostSpec } from "./host.ts";
import { createHostLinks, type HostLink } from "./host-links.ts";
import { createHostWork, statusAfterReport } from "./host-reconciler.ts";
import { recordOwnHost } from "./create-hosts.ts";
import { partial } from "@holdfast/testing/partial.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;

/** A host whose responses the test controls. */
function testLink(answers: () => boolean, reported: () => HostFacts, closed: () => void = () => undefined): HostLink {
  const orNot = async <T>(answer: () => T): Promise<T> => {
    if (answers()) return answer();
    throw new HostUnreachable("far", "connection refused");
  };
  return partial<HostLink>({
    facts: () => orNot(reported),
    images: () => orNot(() => [{ engine: "postgresql", version: "17", available: true }]),
    close: closed,
  });
}

let etcd: TestEtcd;
let store: Store;
let hosts: Collection<HostObject>;
let machines: Collection<MachineObject>;
let runner: Runner;
let up = true;
let reported = testHostFacts;
const dialed: string[] = [];
const left: string[] = [];
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  hosts = createCollection(store, hostKind);
  machines = createCollection(store, machineKind);
  await Promise.all([hosts.ready, machines.ready]);
  const links = createHostLinks({
    hosts,
    own: new Map([
      [
        "own",
        testLink(
          () => true,
          () => testHostFacts,
        ),
      ],
    ]),
    connect: ({ spec }) => {
      dialed.push(spec.address);
      return testLink(
        () => up,
        () => reported,
        () => left.push(spec.address),
      );
    },
  });
  const work = createHostWork({
    hosts,
    machines,
    links,
    begin,
    clock: systemClock,
    log: silentLog,
    pollIntervalMs: 50,
  });
  runner = createRunner({
    loops: [work],
    ownership: soleOwner,
    clock: systemClock,
    log: silentLog,
    random: Math.random,
  });
  runner.start();
});
afterAll(async () => {
  await runner?.stop();
  hosts?.close();
  machines?.close();
  await store?.close();
  await etcd?.stop();
});

const settings = { zone: "z", memoryOvercommit: 2, diskOvercommit: null };
const host = (id: string) => hosts.get(id);
const becomes = (id: string, state: string | undefined) => expect.poll(() => host(id)?.object.status.state).toBe(state);

async function change(id: string, edit: (object: HostObject) => HostObject): Promise<void> {
  // The reconciler may write concurrently.
  await retryConflict(signal, async () => {
    const before = await hosts.getCurrent(id);
    if (before === undefined) throw new Error("it is there");
    const unit = begin();
    unit.update(hostKind, before, edit(before.object));
    await unit.commit();
  });
}

it("creates an object for the own host, and leaves its cordon as operators set it", async () => {
  const deps = { hosts, begin, clock: systemClock };
  await recordOwnHost("own", settings, deps, signal);
  await becomes("own", "ready");
  await change("own", (object) => withHostSpec(object, { cordoned: true }, 1));
  const before = (await hosts.getCurrent("own"))?.object.metadata.generation;
  await recordOwnHost("own", settings, deps, signal);
  expect((await hosts.getCurrent("own"))?.object.metadata.generation).toBe(before);
  await recordOwnHost("own", { ...settings, zone: "y" }, deps, signal);
  expect((await hosts.getCurrent("own"))?.object.spec).toMatchObject({ zone: "y", cordoned: true });
});

it("moves a host to ready, unreachable and back, and deletes a destroyed one", async () => {
  up = false;
  const unit = begin();
  unit.create(hostKind, newHost("far", { ...settings, address: "127.0.0.1:1" }, 1));
  await unit.commit();
  await expect.poll(() => dialed).toEqual(["127.0.0.1:1"]);
  expect(host("far")?.object.status).toMatchObject({ state: "joining", facts: null });

  up = true;
  await becomes("far", "ready");
  expect(host("far")?.object.status).toMatchObject({
    reason: "",
    facts: { memoryTotalBytes: 64 * gib },
    images: [{ version: "17" }],
  });

  const before = host("far")?.object.status as HostObject["status"];
  const little = { facts: { ...testHostFacts, memoryFreeBytes: 59.9 * gib }, images: before.images };
  expect(statusAfterReport(before, little, 5)).toEqual({ reason: "" });
  const [image] = before.images;
  const made = { ...image, available: true, engine: "postgresql", version: "17", image: "trixie-1" };
  const first = statusAfterReport(before, { facts: testHostFacts, images: [made] }, 5);
  expect(first).toMatchObject({ images: [made], imageSince: { "trixie-1": 5 } });
  const next = { facts: testHostFacts, images: [made, { ...made, version: "18", image: "sid-1" }] };
  expect(statusAfterReport({ ...before, ...first }, next, 9).imageSince).toEqual({ "trixie-1": 5, "sid-1": 9 });
  reported = { ...testHostFacts, memoryFreeBytes: 30 * gib };
  await expect.poll(() => host("far")?.object.status.facts?.memoryFreeBytes).toBe(30 * gib);

  up = false;
  await becomes("far", "unreachable");
  expect(host("far")?.object.status).toMatchObject({
    reason: expect.stringContaining("Host far does not respond"),
    facts: { memoryFreeBytes: 30 * gib },
  });
  up = true;
  await becomes("far", "ready");

  await change("far", (object) => withHostSpec(object, { address: "127.0.0.1:2" }, 2));
  await expect.poll(() => [dialed, left]).toEqual([["127.0.0.1:1", "127.0.0.1:2"], ["127.0.0.1:1"]]);
  await change("far", (object) => withHostSpec(object, { destroyedAt: 3 }, 3));
  // It had no machines, so its object is deleted.
  await becomes("far", undefined);
  await expect.poll(() => left).toEqual(["127.0.0.1:1", "127.0.0.1:2"]);
});

// biome-ignore format: a table
it.each<[string, Partial<RootStorage> | undefined, boolean]>([
  ["changed immaterially",   { freeBytes: 19.9 * gib },         false],
  ["changed materially",     { freeBytes: 19 * gib },           true],
  ["has another size",       { totalBytes: 30 * gib },          true],
  ["is out of order",        { problem: "It is gone." },        true],
  ["is no longer reported", undefined,                        true],
])("writes facts if a pool for roots %s", (__, roots, isNew) => {
  const { status } = readyHost("a", {}, { tiers: [rootedTier()] });
  const { roots: _, ...bare } = rootedTier();
  const facts = { ...testHostFacts, tiers: [roots === undefined ? bare : rootedTier(roots)] };
  expect(statusAfterReport(status, { facts, images: status.images }, 1).facts !== undefined).toBe(isNew);
});
