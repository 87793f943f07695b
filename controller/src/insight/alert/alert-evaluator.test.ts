import { silentLog } from "@holdfast/common/log.ts";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createHistory, type History } from "#kernel/history/history.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { type OutboxEntry, outboxPrefix } from "#kernel/store/outbox-entry.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createSamples, type Samples } from "../metric/samples/samples.ts";
import { createAlertEvaluator } from "./alert-evaluator.ts";
import {
  alertRuleKind,
  type AlertRuleObject,
  type AlertRuleSpec,
  createRulesByService,
  type RulesByService,
} from "./alert-rule.ts";
import { monitoredService } from "#services/monitored-services.ts";
import { partial } from "@holdfast/testing/partial.ts";

let etcd: TestEtcd;
let postgresql: TestPostgresql;
let store: Store;
let history: History;
let stored: Samples;
let rules: Collection<AlertRuleObject>;
let rulesByService: RulesByService;
const services = new Map<string, ManagedServiceObject>();
const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });

beforeAll(async () => {
  [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  stored = createSamples(history.sql);
  rules = createCollection(store, alertRuleKind);
  await Promise.all([history.ready, rules.ready]);
  rulesByService = createRulesByService(rules);
});
afterAll(async () => {
  rules?.close();
  await history?.close();
  await store?.close();
  await Promise.all([etcd?.stop(), postgresql?.stop()]);
});

/** A clock that tests advance. */
interface Time {
  now: number;
}

const begin = (time: Time) =>
  createUnitOfWork(store, {
    outbox: { admit() {} },
    sealer,
    clock: { now: () => time.now, monotonicMs: () => time.now },
    ids: uuidv7,
  });

/** A running service, by default with one node, and one rule on its memory. */
async function watched(time: Time, spec: Partial<AlertRuleSpec> = {}, nodeIds: readonly string[] = [uuidv7()]) {
  const serviceId = uuidv7();
  const [nodeId = ""] = nodeIds;
  /** The first node is the primary by default. */
  const becomes = (
    change: {
      power?: "on" | "off";
      poweredOnAt?: number;
      primary?: string;
      nodes?: object[];
      plannedWork?: ManagedServiceObject["status"]["plannedWork"];
    } = {},
  ) => {
    const { primary = nodeId, plannedWork, ...more } = change;
    const nodes = nodeIds.map((id) => ({ id }));
    const service = partial<ManagedServiceObject>({
      metadata: newMetadata(serviceId, time.now, { name: "watched", organizationId: "o" }),
      spec: { power: "on", databaseType: "postgresql", nodes, ...more },
      status: { state: "Running", primaryNodeId: primary, ...(plannedWork && { plannedWork }) },
    });
    services.set(serviceId, service);
  };
  becomes();
  const rule: AlertRuleObject = {
    metadata: newMetadata(uuidv7(), time.now, { name: "much memory", organizationId: "o" }),
    spec: {
      serviceId,
      metric: "memory",
      condition: "gt",
      threshold: 90,
      severity: "warning",
      durationMinutes: 0,
      channelId: null,
      noData: "ignore",
      paused: false,
      since: time.now,
      ...spec,
    },
    status: { fired: null },
  };
  const unit = begin(time);
  unit.create(alertRuleKind, rule);
  await rules.untilRevision(await unit.commit(), 60_000);
  const reported = (value: number, { machineId = nodeId, metricNumber = 2 } = {}) =>
    stored.insert([{ machineId, timeMs: time.now, values: new Map([[metricNumber, value]]) }]);
  const fired = () => rules.get(rule.metadata.id)?.object.status.fired ?? null;
  const events = async () => {
    const { values } = await store.list(outboxPrefix, { limit: 500 });
    const entries = values.map(({ value }) => JSON.parse(value) as OutboxEntry);
    return entries.flatMap((entry) =>
      entry.entry === "event" && entry.objectId === serviceId ? [[entry.type, entry.data["reason"] ?? null]] : [],
    );
  };
  return { reported, fired, events, becomes };
}

/** Resolves after a few more evaluations. */
function counted(samples: Pick<Samples, "recent"> = stored) {
  let looks = 0;
  const recent: Samples["recent"] = (...queries) => ((looks += 1), samples.recent(...queries));
  const ticks = async () => {
    const before = looks;
    await until(() => looks > before + 2);
  };
  return { recent, ticks };
}

/**
 * An evaluator with a short interval. Several may run at a time, such as before a controller detects that another one
 * took over.
 */
function startEvaluator(time: Time, samples: Pick<Samples, "recent"> = stored) {
  const evaluator = createAlertEvaluator({
    rules,
    rulesByService,
    owners: {
      get: (id) => {
        const service = services.get(id);
        return service && monitoredService(service);
      },
      ready: Promise.resolve(),
    },
    samples,
    channelFor: () => null,
    ownership: soleOwner,
    begin: () => begin(time),
    clock: { now: () => time.now, monotonicMs: () => time.now },
    newId: uuidv7,
    log: silentLog,
    tickMs: 10,
  });
  onTestFinished(() => evaluator.stop());
  return evaluator;
}

test("of several evaluators of a rule one fires it, and a later one resolves it", async () => {
  const time = { now: Date.now() };
  const { reported, fired, events } = await watched(time);
  const evaluators = [startEvaluator(time), startEvaluator(time), startEvaluator(time)];
  await reported(95);
  await until(() => fired() !== null);
  await Promise.all(evaluators.map((evaluator) => evaluator.stop()));
  const id = fired()?.id;
  time.now += 15_000;
  await reported(96);
  const { recent, ticks } = counted();
  const after = startEvaluator(time, { recent });
  await ticks();
  expect(fired()?.id).toBe(id);
  await after.stop();
  time.now += 15_000;
  await reported(50);
  startEvaluator(time);
  await until(() => fired() === null);
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "condition_false"],
  ]);
});

test("an unavailable history does not count as silence", async () => {
  const time = { now: Date.now() };
  const { reported, fired, events } = await watched(time, { noData: "fire" });
  await reported(50);
  let isUnavailable = false;
  const { recent, ticks } = counted({
    recent: async (...queries) => {
      if (isUnavailable) throw new Error("away");
      return stored.recent(...queries);
    },
  });
  startEvaluator(time, { recent });
  await ticks();
  isUnavailable = true;
  await ticks();
  time.now += 600_000;
  await ticks();
  isUnavailable = false;
  await ticks();
  expect(fired()).toBeNull();
  time.now += 61_000;
  await until(() => fired()?.state === "no_data");
  expect(await events()).toEqual([["alert.fired", null]]);
});

test("a controller that takes over within the duration fires by all samples of the duration", async () => {
  const time = { now: Date.now() };
  const { reported, fired, events } = await watched(time, { durationMinutes: 1 });
  const since = time.now;
  for (let taken = 0; taken < 5; taken += 1) {
    await reported(95);
    const { recent, ticks } = counted();
    const evaluator = startEvaluator(time, { recent });
    await ticks();
    await evaluator.stop();
    expect(fired() !== null).toBe(time.now - since >= 60_000);
    time.now += 15_000;
  }
  expect(fired()).toMatchObject({ since, firedAt: since + 60_000 });
  expect(await events()).toEqual([["alert.fired", null]]);
});

test("samples from before a stop are ignored by a controller that takes over after the start", async () => {
  const time = { now: Date.now() };
  const { reported, fired, events, becomes } = await watched(time);
  const first = startEvaluator(time);
  await reported(95);
  await until(() => fired() !== null);
  becomes({ power: "off" });
  await until(() => fired() === null);
  await first.stop();
  time.now += 15_000;
  becomes({ poweredOnAt: time.now });
  const { recent, ticks } = counted();
  startEvaluator(time, { recent });
  await ticks();
  expect(fired()).toBeNull();
  time.now += 15_000;
  await reported(95);
  await until(() => fired() !== null);
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "service_stopped"],
    ["alert.fired", null],
  ]);
});

const lag = { metric: "replication_lag_seconds", threshold: 300, noData: "fire" } as const;
const lagNumber = 8;

test("lag rules evaluate replicas only: a promotion resolves the alert, and primaries may be silent", async () => {
  const time = { now: Date.now() };
  const [old, next] = [uuidv7(), uuidv7()];
  const { reported, fired, events, becomes } = await watched(time, lag, [old, next]);
  const { recent, ticks } = counted();
  startEvaluator(time, { recent });
  await reported(50, { machineId: old });
  await reported(900, { machineId: next, metricNumber: lagNumber });
  await until(() => fired() !== null);
  expect(fired()).toMatchObject({ state: "firing", nodeId: next });
  becomes({ primary: next });
  time.now += 15_000;
  await reported(50, { machineId: next });
  await ticks();
  // The new replica has not reported its lag yet.
  expect(fired()).not.toBeNull();
  await reported(0, { machineId: old, metricNumber: lagNumber });
  await until(() => fired() === null);
  time.now += 50_000;
  await reported(0, { machineId: old, metricNumber: lagNumber });
  time.now += 50_000;
  await ticks();
  expect(fired()).toBeNull();
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "condition_false"],
  ]);
});

const unhealthyNumber = metricOf("health")?.number ?? 0;
const healthRule = { metric: "health", threshold: 1, noData: "fire" } as const;

test.each(["silent", "unhealthy"] as const)(
  "a machine in planned work that is %s fires no health rule for five minutes",
  async (what) => {
    const time = { now: Date.now() };
    const [other, worked] = [uuidv7(), uuidv7()];
    const { reported, fired, becomes } = await watched(time, healthRule, [other, worked]);
    const { recent, ticks } = counted();
    startEvaluator(time, { recent });
    const report = async (health: number) => {
      await reported(health, { machineId: other, metricNumber: unhealthyNumber });
      if (what === "unhealthy") await reported(2, { machineId: worked, metricNumber: unhealthyNumber });
    };
    becomes({ plannedWork: { [worked]: { since: time.now } } });
    for (let minute = 0; minute < 5; minute += 1) {
      await report(0);
      await ticks();
      expect(fired()).toBeNull();
      time.now += 60_000;
    }
    await report(0);
    if (what === "silent") {
      await ticks();
      time.now += 61_000;
      await report(0);
    }
    await until(() => fired() !== null);
    expect(fired()?.nodeId).toBe(worked);
  },
);

test("planned work neither resolves an alert that fires already, nor explains other metrics", async () => {
  const time = { now: Date.now() };
  const [other, worked] = [uuidv7(), uuidv7()];
  const health = await watched(time, healthRule, [other, worked]);
  startEvaluator(time);
  await health.reported(0, { machineId: other, metricNumber: unhealthyNumber });
  await health.reported(2, { machineId: worked, metricNumber: unhealthyNumber });
  await until(() => health.fired() !== null);
  health.becomes({ plannedWork: { [worked]: { since: time.now } } });
  time.now += 15_000;
  await health.reported(0, { machineId: other, metricNumber: unhealthyNumber });
  const memory = await watched(time, {}, [worked]);
  memory.becomes({ plannedWork: { [worked]: { since: time.now } } });
  await memory.reported(95);
  await until(() => memory.fired() !== null);
  expect(await health.events()).toEqual([["alert.fired", null]]);
});

test("a lag alert ends with the last replica, and a replica being created may be silent", async () => {
  const time = { now: Date.now() };
  const [primary, replica] = [uuidv7(), uuidv7()];
  const { reported, fired, events, becomes } = await watched(time, lag, [primary, replica]);
  becomes({ nodes: [{ id: primary }, { id: replica, joining: true }] });
  const { recent, ticks } = counted();
  startEvaluator(time, { recent });
  await reported(50);
  await ticks();
  time.now += 90_000;
  await ticks();
  expect(fired()).toBeNull();
  becomes({ nodes: [{ id: primary }, { id: replica }] });
  await ticks();
  expect(fired()).toBeNull();
  time.now += 61_000;
  await until(() => fired()?.state === "no_data");
  expect(fired()?.nodeId).toBe(replica);
  becomes({ nodes: [{ id: primary }] });
  await reported(50);
  await until(() => fired() === null);
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "condition_false"],
  ]);
});
