import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createHistory, type History } from "#kernel/history/history.ts";
import { soleOwner } from "#kernel/runtime/sole-owner.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { type OutboxEntry, outboxPrefix } from "#kernel/store/outbox-entry.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { startTestEtcd, type TestEtcd } from "../../../../test/support/controller/etcd.ts";
import { startTestPostgresql, type TestPostgresql } from "../../../../test/support/engines/postgresql.ts";
import { until } from "../../../../test/support/wait-until.ts";
import { createSamples, type Samples } from "../metric/samples/samples.ts";
import { createAlertEvaluator } from "./alert-evaluator.ts";
import { alertRuleKind, type AlertRuleObject, type AlertRuleSpec } from "./alert-rule.ts";
import { createRulesOfServices, type RulesOfServices } from "./rules-of-services.ts";

let etcd: TestEtcd;
let postgresql: TestPostgresql;
let store: Store;
let history: History;
let stored: Samples;
let rules: Collection<AlertRuleObject>;
let rulesOf: RulesOfServices;
const services = new Map<string, ManagedServiceObject>();
const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });

beforeAll(async () => {
  [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  stored = createSamples(history.sql);
  rules = createCollection(store, alertRuleKind);
  await Promise.all([history.ready, rules.ready]);
  rulesOf = createRulesOfServices(rules);
});
afterAll(async () => {
  rules?.close();
  await history?.close();
  await store?.close();
  await Promise.all([etcd?.stop(), postgresql?.stop()]);
});

/** A clock that a test moves on. */
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

/** A running service, of one node unless given, with one rule on its memory. */
async function watched(time: Time, spec: Partial<AlertRuleSpec> = {}, nodeIds: readonly string[] = [uuidv7()]) {
  const serviceId = uuidv7();
  const [nodeId = ""] = nodeIds;
  /** Its first node is the primary unless another one is named. */
  const becomes = (change: { power?: "on" | "off"; poweredOnAt?: number; primary?: string; nodes?: object[] } = {}) => {
    const { primary = nodeId, ...more } = change;
    const nodes = nodeIds.map((id) => ({ id }));
    const service = {
      metadata: newMetadata(serviceId, time.now, { name: "watched", organizationId: "o" }),
      spec: { power: "on", databaseType: "postgresql", nodes, ...more },
      status: { state: "Running", primaryNodeId: primary },
    };
    services.set(serviceId, service as unknown as ManagedServiceObject);
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
  await rules.reached(await unit.commit(), 60_000);
  const told = (value: number, { machineId = nodeId, slot = 2 } = {}) =>
    stored.insert([{ machineId, timeMs: time.now, values: new Map([[slot, value]]) }]);
  const fired = () => rules.get(rule.metadata.id)?.object.status.fired ?? null;
  const events = async () => {
    const { values } = await store.list(outboxPrefix, { limit: 500 });
    const entries = values.map(({ value }) => JSON.parse(value) as OutboxEntry);
    return entries.flatMap((entry) =>
      entry.entry === "event" && entry.objectId === serviceId ? [[entry.type, entry.data["reason"] ?? null]] : [],
    );
  };
  return { told, fired, events, becomes };
}

/** Resolves when it has looked a few more times. */
function counted(samples: Pick<Samples, "recent"> = stored) {
  let looks = 0;
  const recent: Samples["recent"] = (...asked) => ((looks += 1), samples.recent(...asked));
  const look = async () => {
    const before = looks;
    await until(() => looks > before + 2);
  };
  return { recent, look };
}

/** One that looks often; several may run at a time, as while one controller has not noticed yet that another took over. */
function evaluate(time: Time, samples: Pick<Samples, "recent"> = stored) {
  const evaluator = createAlertEvaluator({
    rules,
    rulesOf,
    services: {
      get: (id) =>
        services.has(id) ? { object: services.get(id) as ManagedServiceObject, modRevision: 1n } : undefined,
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

test("of several that evaluate the same rule one fires it, and whoever comes after resolves it", async () => {
  const time = { now: Date.now() };
  const { told, fired, events } = await watched(time);
  const evaluators = [evaluate(time), evaluate(time), evaluate(time)];
  await told(95);
  await until(() => fired() !== null);
  await Promise.all(evaluators.map((evaluator) => evaluator.stop()));
  const id = fired()?.id;
  time.now += 15_000;
  await told(96);
  const { recent, look } = counted();
  const after = evaluate(time, { recent });
  await look();
  expect(fired()?.id).toBe(id);
  await after.stop();
  time.now += 15_000;
  await told(50);
  evaluate(time);
  await until(() => fired() === null);
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "condition_false"],
  ]);
});

test("a history that is away is no silence", async () => {
  const time = { now: Date.now() };
  const { told, fired, events } = await watched(time, { noData: "fire" });
  await told(50);
  let away = false;
  const { recent, look } = counted({
    recent: async (...asked) => {
      if (away) throw new Error("away");
      return stored.recent(...asked);
    },
  });
  evaluate(time, { recent });
  await look();
  away = true;
  await look();
  time.now += 600_000;
  await look();
  away = false;
  await look();
  expect(fired()).toBeNull();
  time.now += 61_000;
  await until(() => fired()?.state === "no_data");
  expect(await events()).toEqual([["alert.fired", null]]);
});

test("a controller that takes over in the middle of the duration fires by all samples of it", async () => {
  const time = { now: Date.now() };
  const { told, fired, events } = await watched(time, { durationMinutes: 1 });
  const since = time.now;
  for (let taken = 0; taken < 5; taken += 1) {
    await told(95);
    const { recent, look } = counted();
    const evaluator = evaluate(time, { recent });
    await look();
    await evaluator.stop();
    expect(fired() !== null).toBe(time.now - since >= 60_000);
    time.now += 15_000;
  }
  expect(fired()).toMatchObject({ since, firedAt: since + 60_000 });
  expect(await events()).toEqual([["alert.fired", null]]);
});

test("samples from before a stop count for nobody who takes over after the start", async () => {
  const time = { now: Date.now() };
  const { told, fired, events, becomes } = await watched(time);
  const first = evaluate(time);
  await told(95);
  await until(() => fired() !== null);
  becomes({ power: "off" });
  await until(() => fired() === null);
  await first.stop();
  time.now += 15_000;
  becomes({ poweredOnAt: time.now });
  const { recent, look } = counted();
  evaluate(time, { recent });
  await look();
  expect(fired()).toBeNull();
  time.now += 15_000;
  await told(95);
  await until(() => fired() !== null);
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "service_stopped"],
    ["alert.fired", null],
  ]);
});

const lag = { metric: "replication_lag_seconds", threshold: 300, noData: "fire" } as const;
const lagSlot = 8;

test("of a lag only replicas are asked: one that becomes the primary ends its alert, and a primary is not silent", async () => {
  const time = { now: Date.now() };
  const [old, next] = [uuidv7(), uuidv7()];
  const { told, fired, events, becomes } = await watched(time, lag, [old, next]);
  const { recent, look } = counted();
  evaluate(time, { recent });
  await told(50, { machineId: old });
  await told(900, { machineId: next, slot: lagSlot });
  await until(() => fired() !== null);
  expect(fired()).toMatchObject({ state: "firing", nodeId: next });
  becomes({ primary: next });
  time.now += 15_000;
  await told(50, { machineId: next });
  await look();
  // Whoever follows now has said nothing of its lag yet.
  expect(fired()).not.toBeNull();
  await told(0, { machineId: old, slot: lagSlot });
  await until(() => fired() === null);
  time.now += 50_000;
  await told(0, { machineId: old, slot: lagSlot });
  time.now += 50_000;
  await look();
  expect(fired()).toBeNull();
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "condition_false"],
  ]);
});

test("a lag ends with the last replica, and one that is made is not silent", async () => {
  const time = { now: Date.now() };
  const [primary, replica] = [uuidv7(), uuidv7()];
  const { told, fired, events, becomes } = await watched(time, lag, [primary, replica]);
  becomes({ nodes: [{ id: primary }, { id: replica, joining: true }] });
  const { recent, look } = counted();
  evaluate(time, { recent });
  await told(50);
  await look();
  time.now += 90_000;
  await look();
  expect(fired()).toBeNull();
  becomes({ nodes: [{ id: primary }, { id: replica }] });
  await look();
  expect(fired()).toBeNull();
  time.now += 61_000;
  await until(() => fired()?.state === "no_data");
  expect(fired()?.nodeId).toBe(replica);
  becomes({ nodes: [{ id: primary }] });
  await told(50);
  await until(() => fired() === null);
  expect(await events()).toEqual([
    ["alert.fired", null],
    ["alert.resolved", "condition_false"],
  ]);
});
