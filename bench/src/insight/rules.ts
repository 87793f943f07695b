import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createAlertEvaluator } from "@holdfast/controller/insight/alert/alert-evaluator.ts";
import {
  alertRuleKind,
  type AlertRuleObject,
  createRulesByService,
} from "@holdfast/controller/insight/alert/alert-rule.ts";
import { createSamples } from "@holdfast/controller/insight/metric/samples/samples.ts";
import { createHistory } from "@holdfast/controller/kernel/history/history.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createCollection } from "@holdfast/controller/kernel/store/collection.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import { createUnitOfWork } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "@holdfast/controller/services/service/managed-service.ts";
import { monitoredService } from "@holdfast/controller/services/monitored-services.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { uuidv7 } from "uuidv7";
import { print } from "../support/figures.ts";
import { watchedServices } from "./watched-services.ts";

const ofOne = 10;
const batch = 50;
const intervalMs = 15_000;
const memoryNumber = 2;

/** CPU of a controller that evaluates rules while machines report their samples, spread over the interval as usual. */
export async function measureRules(count: number, seconds: number): Promise<void> {
  const [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  const samples = createSamples(history.sql);
  const rules = createCollection(store, alertRuleKind);
  try {
    await Promise.all([history.ready, rules.ready]);
    const services = new Map(watchedServices(count / ofOne).map((service) => [service.metadata.id, service]));
    const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
    const outbox = { admit() {} };
    const begin = () => createUnitOfWork(store, { outbox, sealer, clock: systemClock, ids: uuidv7 });
    const made = [...services.values()].flatMap(rulesOfOne);
    for (let from = 0; from < made.length; from += batch) {
      const unit = begin();
      for (const rule of made.slice(from, from + batch)) unit.create(alertRuleKind, rule);
      await rules.untilRevision(await unit.commit(), 10_000);
    }
    const evaluator = createAlertEvaluator({
      rules,
      rulesByService: createRulesByService(rules),
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
      begin,
      clock: systemClock,
      newId: uuidv7,
      log: silentLog,
    });
    const machines = [...services.values()].flatMap(({ spec }) => spec.nodes.map(({ id }) => id));
    const share = Math.ceil(machines.length / (intervalMs / 1_000));
    const notify = (machineIds: readonly string[], value: number) =>
      samples.insert(
        machineIds.map((machineId) => ({ machineId, timeMs: Date.now(), values: new Map([[memoryNumber, value]]) })),
      );
    const notifyEach = async (forSeconds: number) => {
      for (let second = 0; second < forSeconds; second += 1) {
        const from = (second * share) % machines.length;
        await notify(machines.slice(from, from + share), 50);
        await sleep(1_000);
      }
    };
    // Loads the past samples of all machines first.
    await notifyEach(intervalMs / 1_000);
    const cpu = process.cpuUsage();
    const startedAt = performance.now();
    await notifyEach(seconds);
    const { user, system } = process.cpuUsage(cpu);
    const used = (user + system) / 1_000 / (performance.now() - startedAt);
    print(`${made.length} rules, CPU of the controller`, `${(used * 100).toFixed(2)}% of a core`, "<= 2%");

    await notify(machines.slice(0, 1), 99);
    const fired = () => [...rules.values()].filter(({ object }) => object.status.fired !== null).length;
    await waitUntil("the rules of one machine fire", () => fired() === ofOne);
    await evaluator.stop();
    if (fired() !== ofOne) throw new Error(`${fired()} rules fire`);
  } finally {
    rules.close();
    await history.close();
    await store.close();
    await Promise.all([etcd.stop(), postgresql.stop()]);
  }
}

function rulesOfOne({ metadata: { id: serviceId } }: ManagedServiceObject): AlertRuleObject[] {
  const now = Date.now();
  return Array.from({ length: ofOne }, (_, index) => ({
    metadata: newMetadata(uuidv7(), now, { name: "much memory", organizationId: "o" }),
    spec: {
      serviceId,
      metric: "memory",
      condition: "gt",
      threshold: 90 + index / ofOne,
      severity: "warning",
      durationMinutes: 0,
      channelId: null,
      noData: "ignore",
      paused: false,
      since: now,
    },
    status: { fired: null },
  }));
}
