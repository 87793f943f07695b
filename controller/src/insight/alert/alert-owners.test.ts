import { silentLog } from "@holdfast/common/log.ts";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MonitoredOwner, Monitoring } from "#fleet/owner/monitored-owner.ts";
import { createMonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { OwnerKind } from "#fleet/owner/owner-kind.ts";
import { type OutboxEntry, outboxPrefix } from "#kernel/store/outbox-entry.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createAlertEvaluator } from "./alert-evaluator.ts";
import { createRulesByService } from "./alert-rule.ts";
import { createAlertRulesWork } from "./alert-rules-reconciler.ts";

let fixture: TestStore;
beforeAll(async () => {
  fixture = await startTestStore();
});
afterAll(() => fixture?.close());

const [id, machineId] = [uuidv7(), uuidv7()];
const healthNumber = metricOf("health")?.number ?? 0;

test("an owner that is no service gets the default rules of its kind, fires, and is resolved by its deletion", async () => {
  let board: MonitoredOwner | undefined = {
    owner: { kind: "board", id },
    noun: "board",
    name: "chess",
    organizationId: "o",
    software: "board",
    machines: [{ id: machineId, role: "primary", isExpected: true }],
    mainMachineId: machineId,
    suspension: undefined,
    startedAt: 0,
    generation: 1,
    term: 1,
  };
  const monitoring = partial<Monitoring>({
    noun: "board",
    defaultRules: ["disk", "health"],
    get: (each) => (each === id ? board : undefined),
    exists: async () => board !== undefined,
    ids: () => (board === undefined ? [] : [id]),
    ready: Promise.resolve(),
  });
  const owners = createMonitoredOwners([partial<OwnerKind>({ kind: "board", monitoring })]);
  const { alertRules: rules, alertRuleSets: ruleSets } = fixture.collections;
  const rulesByService = createRulesByService(rules);
  let now = Date.parse("2026-11-20T10:00:00Z");
  const clock = { now: () => now, monotonicMs: () => now };
  const deps = { owners, rules, rulesByService, ruleSets, begin: fixture.begin, clock, newId: uuidv7, log: silentLog };
  const { signal } = new AbortController();

  const work = createAlertRulesWork(deps);
  await work.reconciler.reconcile(id, signal);
  await until(() => rulesByService.of(id).length === 2);
  expect(rulesByService.of(id).map(({ object: { spec } }) => [spec.metric, spec.ownerKind])).toEqual([
    ["disk", "board"],
    ["health", "board"],
  ]);

  const firedAt = now + 10 * 60_000;
  const samples = Array.from({ length: 41 }, (_, n) => ({
    machineId,
    timeMs: now + n * 15_000,
    values: new Map([[healthNumber, 2]]),
  }));
  now = firedAt;
  const recent = async () => samples;
  const evaluator = createAlertEvaluator({
    ...deps,
    samples: { recent },
    channelFor: () => null,
    ownership: soleOwner,
    tickMs: 10,
  });
  const firing = () => rulesByService.of(id).filter(({ object }) => object.status.fired !== null);
  await until(() => firing().length === 1);
  expect(firing()[0]?.object).toMatchObject({ spec: { metric: "health" }, status: { fired: { nodeId: machineId } } });
  await evaluator.stop();

  // The owner was deleted: its rules are removed, and the alert is resolved.
  board = undefined;
  await work.reconciler.reconcile(id, signal);
  await until(() => rulesByService.of(id).length === 0);
  const { values } = await fixture.store.list(outboxPrefix, { limit: 500 });
  const events = values
    .map(({ value }) => JSON.parse(value) as OutboxEntry)
    .flatMap((entry) => (entry.entry === "event" && entry.objectId === id ? [entry] : []));
  expect(events.map(({ type, objectKind, data }) => [type, objectKind, data["service_name"], data["reason"]])).toEqual([
    ["alert.fired", "board", "chess", undefined],
    ["alert.resolved", "board", "chess", "board_deleted"],
  ]);
});
