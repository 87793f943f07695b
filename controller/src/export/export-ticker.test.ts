import { silentLog } from "@holdfast/common/log.ts";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient, type EgressClient } from "@holdfast/egress/egress-client.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createSamples, type Samples } from "#insight/metric/samples/samples.ts";
import { createHistory, type History } from "#kernel/history/history.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { type OutboxEntry, outboxPrefix } from "#kernel/store/outbox-entry.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type ManagedServiceObject, managedServiceKind } from "#services/service/managed-service.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { nodeOf, runningService } from "@holdfast/testing/controller/service-object.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { exportReaders, type ReadItem } from "@holdfast/testing/servers/export-readers.ts";
import {
  type ExportArrival,
  type ExportReceiver,
  type ExportReply,
  startExportReceiver,
} from "@holdfast/testing/servers/export-receiver.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { newConfiguration } from "./configuration/changed-configuration.ts";
import { splitConfiguration, sealSecrets } from "./configuration/secrets.ts";
import { destinations } from "./destinations/destinations.ts";
import { createExportMemory } from "./export-memory.ts";
import { createRunStates, type RunStates } from "./export-run-state.ts";
import { createExportSender } from "./export-sender.ts";
import { createExportShipper } from "./export-shipper.ts";
import { createExportTargets } from "./export-targets.ts";
import { createExportTicker } from "./export-ticker.ts";
import { type MetricsExportObject, type MetricsExportSpec, metricsExportKind } from "./metrics-export.ts";
import { createServiceMonitoring } from "#services/monitored-services.ts";
import { createSampleSource } from "./sample-source.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
const destination = destinations.prometheus_remote_write;
const reader = exportReaders.prometheus_remote_write;
const vendors = { apm: "", logSaas: "", cloud: "" };
/** The time around which all samples of a test are: partitions are created for these days. */
const start = Math.floor(Date.now() / 60_000) * 60_000 - 3 * hourMs;
let etcd: TestEtcd;
let postgresql: TestPostgresql;
let store: Store;
let history: History;
let samples: Samples;
let states: RunStates;
let egress: EgressClient;
let exports: Collection<MetricsExportObject>;
let services: Collection<ManagedServiceObject>;

beforeAll(async () => {
  [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  history = createHistory({ url: postgresql.url, log: silentLog, now: () => start });
  samples = createSamples(history.sql);
  states = createRunStates(history.sql);
  exports = createCollection(store, metricsExportKind);
  services = createCollection(store, managedServiceKind);
  const own = { host: () => [], listeners: () => [], machineNetworks: () => [] };
  egress = createEgressClient({ policy: createAddressPolicy(["127.0.0.0/8"], own), resolve: createResolveName() });
  await Promise.all([history.ready, exports.ready, services.ready]);
});
afterAll(async () => {
  exports?.close();
  services?.close();
  await egress?.close();
  await history?.close();
  await store?.close();
  await Promise.all([etcd?.stop(), postgresql?.stop()]);
});

const begin = (now: number) =>
  createUnitOfWork(store, {
    outbox: { admit() {} },
    sealer,
    clock: { now: () => now, monotonicMs: () => now },
    ids: uuidv7,
  });

/** The last node reports samples; the others report none. */
async function addService(organizationId: string, silentNodes = 0) {
  const machineId = uuidv7();
  const silent = Array.from({ length: silentNodes }, () => nodeOf(uuidv7()));
  const service = runningService(
    { id: uuidv7(), name: "db", organizationId },
    { nodes: [...silent, nodeOf(machineId)] },
    { primaryNodeId: machineId },
  );
  const unit = begin(start);
  unit.create(managedServiceKind, service);
  await services.untilRevision(await unit.commit(), 60_000);
  const publish = (fromMs: number, count: number) =>
    samples.insert(
      Array.from({ length: count }, (_, n) => ({
        machineId,
        timeMs: fromMs + n * 15_000,
        values: new Map([
          [1, n],
          [2, n / 2],
        ]),
      })),
    );
  return { id: service.metadata.id, machineId, publish };
}

async function addExport(organizationId: string, url: string, change: Partial<MetricsExportSpec> = {}) {
  const id = uuidv7();
  const checked = newConfiguration(destination, reader.configuration(url));
  if (!checked.ok) throw new Error("the configuration is invalid");
  const parted = splitConfiguration(destination, checked.configuration);
  const unit = begin(start);
  unit.create(metricsExportKind, {
    metadata: newMetadata(id, start, { name: "test", organizationId }),
    spec: {
      serviceId: null,
      destinationType: "prometheus_remote_write",
      dataType: "metrics",
      intervalSeconds: 30,
      configuration: parted.configuration,
      sealedSecrets: sealSecrets(id, destination, parted, sealer),
      isEnabled: true,
      disabledReason: null,
      since: start - 1,
      ...change,
    },
    status: {},
  });
  await exports.untilRevision(await unit.commit(), 60_000);
  return id;
}

/**
 * A receiver that stores what it accepted, and a ticker that runs one organization's integrations until the test ends.
 */
async function scenario() {
  const organizationId = uuidv7();
  const time = { now: start };
  const taken: ReadItem[] = [];
  const take = (arrival: ExportArrival): ExportReply => {
    taken.push(...(reader.read(arrival) ?? []));
    return reader.acceptance(arrival);
  };
  const receiver: ExportReceiver = await startExportReceiver(take);
  const clock = { now: () => time.now, monotonicMs: () => time.now };

  function startTicker(change: Partial<RunStates> = {}, { others = [] as readonly string[], tickMaxMs = 60_000 } = {}) {
    const own: RunStates = { ...states, ...change };
    const send = createExportSender({ egress: { users: egress, operators: egress }, vendors });
    const shipper = createExportShipper({
      samples: createSampleSource(samples),
      logs: { next: async () => undefined },
      states: own,
      memory: createExportMemory(),
      send,
      vendors,
      clock,
      log: silentLog,
      wait: async () => undefined,
    });
    const organizations = new Set([organizationId, ...others]);
    const isOwned = (id: string) => organizations.has(exports.get(id)?.object.metadata.organizationId ?? "");
    const counts = { clockReadings: 0, ticks: 0 };
    const ticker = createExportTicker({
      exports,
      targetsOf: createExportTargets({ owners: createServiceMonitoring(services, "databases"), exports }),
      shipper,
      states: own,
      ownership: {
        ...soleOwner,
        owns: isOwned,
        begin: () => ({ signal: new AbortController().signal, claim: undefined, end: () => (counts.ticks += 1) }),
      },
      begin: () => begin(time.now),
      sealer,
      clock: { ...clock, now: () => ((counts.clockReadings += 1), time.now) },
      log: silentLog,
      ready: Promise.resolve(),
      pollIntervalMs: 2,
      tickMaxMs,
    });
    const stop = () => ticker.stop();
    onTestFinished(stop);
    return { stop, counts };
  }
  onTestFinished(() => receiver.close());

  const stateOf = async (id: string) => (await states.read([id])).get(id);
  const keys = () => taken.map(({ name, timeMs, nodeId }) => `${nodeId} ${name} ${timeMs}`);
  const events = async (id: string) => {
    const { values } = await store.list(outboxPrefix, { limit: 500 });
    return values
      .map(({ value }) => JSON.parse(value) as OutboxEntry)
      .flatMap((entry) => (entry.entry === "event" && entry.objectId === id ? [entry.type] : []));
  };
  return { organizationId, time, taken, take, receiver, startTicker, stateOf, keys, events };
}

/** The samples of a machine as the destination gets them. */
const requested = (machineId: string, fromMs: number, count: number) =>
  Array.from({ length: count }, (_, n) =>
    ["cpu", "memory"].map((name) => `${machineId} ${name} ${fromMs + n * 15_000}`),
  ).flat();

function expectInOrder(items: readonly ReadItem[]): void {
  for (const own of Map.groupBy(items, ({ nodeId, name }) => `${nodeId} ${name}`).values()) {
    const times = own.map(({ timeMs }) => timeMs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  }
}

test("an outage of two hours leaves no gap, and is announced with its end", async () => {
  const { organizationId, time, taken, take, receiver, startTicker, stateOf, keys, events } = await scenario();
  const service = await addService(organizationId);
  receiver.reply(() => ({ status: 503 }));
  const id = await addExport(organizationId, receiver.url);
  await service.publish(start, 480);
  const ticker = startTicker();
  // The event is written before the state.
  await until(async () => {
    time.now += 60_000;
    return (await stateOf(id))?.isAnnounced === true;
  });
  expect(await events(id)).toContain("export.failing");
  expect(await stateOf(id)).toMatchObject({
    lastError: "HTTP 503: the destination fails",
    samples: 0,
    isAnnounced: true,
  });
  receiver.reply(take);
  await until(async () => {
    time.now += 300_000;
    return (await stateOf(id))?.isAnnounced === false;
  });
  expect(await events(id)).toContain("export.recovered");
  await until(() => {
    time.now += 30_000;
    return keys().length >= 960;
  });
  expect(keys().toSorted()).toEqual(requested(service.machineId, start, 480).toSorted());
  expectInOrder(taken);
  await until(async () => (await stateOf(id))?.behindSinceMs === null);
  const { length } = receiver.arrivals;
  expect(await stateOf(id)).toMatchObject({
    samples: 960,
    consecutiveFailures: 0,
    isAnnounced: false,
    lastError: null,
  });
  // Without new items there is no request and no write.
  const before = await stateOf(id);
  const { ticks } = ticker.counts;
  await until(() => {
    time.now += 30_000;
    return ticker.counts.ticks >= ticks + 20;
  });
  expect(receiver.arrivals.length).toBe(length);
  expect(await stateOf(id)).toEqual(before);
});

test.each(["take", "advance", "endTick"] as const)(
  "an owner that dies in %s is followed by one that loses nothing",
  async (step) => {
    const { organizationId, time, taken, receiver, startTicker, stateOf, keys } = await scenario();
    const service = await addService(organizationId);
    const id = await addExport(organizationId, receiver.url);
    await service.publish(start, 100);
    let hasDied = false;
    // It reaches this step and stops there: the write does not happen.
    const first = startTicker({
      [step]: () => {
        hasDied = true;
        return Promise.reject(new Error("killed"));
      },
    });
    await until(() => {
      time.now += 30_000;
      return hasDied;
    });
    await first.stop();
    startTicker();
    await until(async () => {
      time.now += 30_000;
      return ((await stateOf(id))?.samples ?? 0) >= 200;
    });
    expect([...new Set(keys())].toSorted()).toEqual(requested(service.machineId, start, 100).toSorted());
    expectInOrder(
      [
        ...new Map(taken.toReversed().map((item) => [`${item.nodeId} ${item.name} ${item.timeMs}`, item])).values(),
      ].toReversed(),
    );
  },
);

test("an owner that was paused while another took over moves no cursor back", async () => {
  const { organizationId, time, receiver, startTicker, stateOf, keys } = await scenario();
  const service = await addService(organizationId);
  const id = await addExport(organizationId, receiver.url);
  await service.publish(start, 20);
  let isPaused = false;
  const goOn = Promise.withResolvers<void>();
  let late: unknown;
  const first = startTicker({
    async advance(...requests) {
      isPaused = true;
      await goOn.promise;
      late = await states.advance(...requests).catch((error: unknown) => error);
      throw late;
    },
  });
  await until(() => {
    time.now += 30_000;
    return isPaused;
  });
  startTicker();
  await service.publish(start + 20 * 15_000, 20);
  await until(async () => {
    time.now += 30_000;
    return ((await stateOf(id))?.samples ?? 0) >= 80;
  });
  goOn.resolve();
  await first.stop();
  expect(String(late)).toContain("TakenOver");
  expect((await states.take(id)).cursors).toMatchObject([{ position: String(start + 39 * 15_000) }]);
  expect([...new Set(keys())]).toHaveLength(80);
});

test("a service's own integration replaces the global one, also for the time after its deletion", async () => {
  const { organizationId, time, receiver, startTicker, keys, stateOf } = await scenario();
  const [a, b] = [await addService(organizationId), await addService(organizationId)];
  await a.publish(start, 4);
  await b.publish(start, 4);
  time.now = start + 60_000;
  const globalExport = await addExport(organizationId, receiver.url);
  const own = await addExport(organizationId, receiver.url, { serviceId: a.id });
  startTicker();
  await until(async () => {
    time.now += 10_000;
    return keys().length >= 16 && (await stateOf(globalExport))?.samples === 8 && (await stateOf(own))?.samples === 8;
  });
  expect(keys().toSorted()).toEqual(
    [...requested(a.machineId, start, 4), ...requested(b.machineId, start, 4)].toSorted(),
  );
  const stored = exports.get(own);
  if (stored === undefined) throw new Error("it is not there");
  const unit = begin(time.now);
  unit.remove(metricsExportKind, stored);
  await exports.untilRevision(await unit.commit(), 60_000);
  const later = Math.ceil(time.now / 15_000) * 15_000 + 60_000;
  time.now = later + 60_000;
  await a.publish(later, 2);
  const since = () => [...new Set(keys().slice(16))];
  await until(() => {
    time.now += 10_000;
    return since().length >= 4;
  });
  expect(since().toSorted()).toEqual(requested(a.machineId, later, 2).toSorted());
});

test("silent machines do not delay others, however many there are", async () => {
  const { organizationId, time, receiver, startTicker, keys } = await scenario();
  const service = await addService(organizationId, 450);
  await addExport(organizationId, receiver.url);
  await service.publish(start, 4);
  startTicker();
  await until(() => {
    time.now += 10_000;
    return keys().length >= 8;
  });
  expect(keys().toSorted()).toEqual(requested(service.machineId, start, 4).toSorted());
});

test("an integration with a backlog is rescheduled immediately until it has caught up", async () => {
  const { organizationId, time, receiver, startTicker, stateOf, keys } = await scenario();
  const service = await addService(organizationId);
  const id = await addExport(organizationId, receiver.url);
  // More than ten batches.
  await service.publish(start - 3_000 * 15_000, 3_000);
  const stored = exports.get(id);
  if (stored === undefined) throw new Error("it is not there");
  const unit = begin(start);
  unit.update(metricsExportKind, stored, { ...stored.object, spec: { ...stored.object.spec, since: start - dayMs } });
  await exports.untilRevision(await unit.commit(), 60_000);
  startTicker();
  await until(async () => {
    time.now += 1_000;
    return ((await stateOf(id))?.samples ?? 0) > 0;
  });
  // The clock does not move: nothing that follows is due by an interval.
  await until(async () => (await stateOf(id))?.samples === 6_000 && (await stateOf(id))?.behindSinceMs === null);
  expect(new Set(keys()).size).toBe(6_000);
});

test("sixty hanging new destinations of twelve organizations delay no other one", async () => {
  const { organizationId, time, receiver, startTicker, keys } = await scenario();
  const hanging = await startExportReceiver(() => "never");
  onTestFinished(() => hanging.close());
  const others = Array.from({ length: 12 }, () => uuidv7());
  for (const other of others)
    for (let n = 0; n < 5; n += 1) {
      const dead = await addService(other);
      await dead.publish(start, 2);
      await addExport(other, hanging.url, { serviceId: dead.id });
    }
  startTicker({}, { others });
  await until(() => {
    time.now += 1_000;
    return hanging.arrivals.length >= 24;
  });
  const service = await addService(organizationId);
  await service.publish(start, 4);
  const started = performance.now();
  await addExport(organizationId, receiver.url);
  await until(() => {
    time.now += 10_000;
    return keys().length >= 8;
  });
  // A request to a hanging destination times out after ten seconds.
  expect(performance.now() - started).toBeLessThan(5_000);
});

test("hanging new destinations do not delay healthy ones of their organization", async () => {
  const { organizationId, time, receiver, startTicker, stateOf, keys } = await scenario();
  const hanging = await startExportReceiver(() => "never");
  onTestFinished(() => hanging.close());
  const service = await addService(organizationId);
  await service.publish(start, 2);
  const id = await addExport(organizationId, receiver.url, { serviceId: service.id });
  startTicker();
  await until(async () => {
    time.now += 10_000;
    return (await stateOf(id))?.samples === 4;
  });
  for (let n = 0; n < 12; n += 1) {
    const dead = await addService(organizationId);
    await dead.publish(start, 2);
    await addExport(organizationId, hanging.url, { serviceId: dead.id });
  }
  await until(() => {
    time.now += 1_000;
    return hanging.arrivals.length >= 2;
  });
  const started = performance.now();
  await service.publish(start + 30_000, 2);
  await until(() => {
    time.now += 10_000;
    return keys().length >= 8;
  });
  // A request to a hanging destination times out after ten seconds.
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(keys().toSorted()).toEqual(requested(service.machineId, start, 4).toSorted());
});

test("a destination that responds too slowly for a tick has failed", async () => {
  const { organizationId, time, startTicker, stateOf } = await scenario();
  const hanging = await startExportReceiver(() => "never");
  onTestFinished(() => hanging.close());
  const service = await addService(organizationId);
  await service.publish(start, 2);
  const id = await addExport(organizationId, hanging.url);
  startTicker({}, { tickMaxMs: 500 });
  await until(async () => {
    time.now += 100;
    return (await stateOf(id))?.consecutiveFailures === 1;
  });
  expect(await stateOf(id)).toMatchObject({ lastError: expect.stringContaining("too slow"), samples: 0, refused: 0 });
});

test.each([
  [409, "tenant conflict, wrong cluster", "HTTP 409: the data conflict with those of the destination", "refused"],
  [409, "out of order sample", "HTTP 409: the destination refuses the data as too old or repeated", "tooOld"],
  [400, "out of bounds", "HTTP 400: the destination refuses the data as too old or repeated", "tooOld"],
] as const)(
  "a destination that drops everything by %i %s is announced as failing",
  async (status, body, error, count) => {
    const { organizationId, time, receiver, startTicker, stateOf, events, take } = await scenario();
    const service = await addService(organizationId);
    receiver.reply(() => ({ status, body }));
    const id = await addExport(organizationId, receiver.url);
    let published = 0;
    const publish = async () => {
      await service.publish(start + published * 15_000, 2);
      published += 2;
      time.now += 30_000;
    };
    startTicker();
    await until(async () => {
      await publish();
      return (await stateOf(id))?.isAnnounced === true;
    });
    expect(await events(id)).toContain("export.failing");
    const failed = await stateOf(id);
    expect(failed).toMatchObject({ lastError: error, samples: 0 });
    expect(failed?.[count]).toBeGreaterThan(0);
    receiver.reply(take);
    await until(async () => {
      await publish();
      return (await stateOf(id))?.isAnnounced === false;
    });
    expect(await stateOf(id)).toMatchObject({ lastError: null, consecutiveFailures: 0 });
  },
);

test("after seven days of failures an integration is disabled, with an event", async () => {
  const { organizationId, time, receiver, startTicker, events } = await scenario();
  const service = await addService(organizationId);
  receiver.reply(() => ({ status: 401 }));
  const id = await addExport(organizationId, receiver.url);
  await service.publish(start, 2);
  const ticker = startTicker();
  await until(async () => {
    time.now += dayMs / 10;
    return exports.get(id)?.object.spec.isEnabled === false;
  });
  expect(exports.get(id)?.object.spec.disabledReason).toContain("HTTP 401");
  expect(await events(id)).toEqual(expect.arrayContaining(["export.failing", "export.disabled"]));
  const { length } = receiver.arrivals;
  time.now += dayMs;
  // Each round reads the clock; ticks that these rounds began have ended when it is stopped.
  const { clockReadings } = ticker.counts;
  await until(() => ticker.counts.clockReadings >= clockReadings + 10);
  await ticker.stop();
  expect(receiver.arrivals.length).toBe(length);
});
