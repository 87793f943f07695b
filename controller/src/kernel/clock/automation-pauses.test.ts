import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import type { Store } from "../store/store.ts";
import { createDrift, createAutomationPauses, pausePrefix, type AutomationPauses } from "./automation-pauses.ts";

let etcd: TestEtcd;
let store: Store;
const minute = 60_000;
const hour = 60 * minute;

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

function steppedClock() {
  const time = { wall: Date.parse("2026-01-01T00:00:00Z"), monotonic: 5_000 };
  const pass = (ms: number) => {
    time.wall += ms;
    time.monotonic += ms;
  };
  return { time, pass, clock: { now: () => time.wall, monotonicMs: () => time.monotonic } };
}

async function open(clock = steppedClock().clock): Promise<AutomationPauses> {
  const automationPauses = createAutomationPauses({ store, clock, log: silentLog });
  onTestFinished(automationPauses.close);
  await until(() => automationPauses.list().every(({ kind }) => kind !== "unknown"));
  return automationPauses;
}

const kinds = (automationPauses: AutomationPauses) => automationPauses.list().map(({ kind }) => kind);

test.each([
  ["clocks that advance alike", 10 * minute, 0, undefined],
  ["a minute apart", 0, minute, undefined],
  ["an hour forward", 0, hour, hour],
  ["an hour back", 10, -hour, -hour],
])("%s: drift", (_name, passed, stepped, expected) => {
  const { time, pass, clock } = steppedClock();
  const drift = createDrift(clock);
  pass(passed);
  time.wall += stepped;
  expect(drift.check()).toBe(expected);
  expect(drift.check()).toBeUndefined();
});

test("slow drift of the clock is tolerated", () => {
  const { time, pass, clock } = steppedClock();
  const drift = createDrift(clock);
  for (let hours = 0; hours < 100; hours += 1) {
    pass(hour + 1);
    time.wall += 2_000;
    expect(drift.check()).toBeUndefined();
  }
});

test("everything is paused until the store has been read", () => {
  const automationPauses = createAutomationPauses({ store, clock: steppedClock().clock, log: silentLog });
  onTestFinished(automationPauses.close);
  expect(kinds(automationPauses)).toEqual(["unknown"]);
});

test("a clock jump pauses deletion immediately, on every controller, for an hour", async () => {
  const { time, pass, clock } = steppedClock();
  const automationPauses = await open(clock);
  expect(kinds(automationPauses)).toEqual([]);
  time.wall += hour;
  expect(kinds(automationPauses)).toEqual(["clock"]);
  const others = await open(clock);
  await until(() => kinds(others).length > 0);
  expect(others.list()[0]?.reason).toBe("The wall clock jumped by 3600 s.");
  pass(hour + 1);
  expect(kinds(automationPauses)).toEqual([]);
  expect(kinds(others)).toEqual([]);
});

test("a pause without an end is in force until it is released", async () => {
  const { pass, clock } = steppedClock();
  const automationPauses = await open(clock);
  await automationPauses.set({ kind: "restored", reason: "from a snapshot", since: clock.now(), until: null });
  pass(1_000 * hour);
  expect(kinds(automationPauses)).toContain("restored");
  await automationPauses.release("restored");
  expect(kinds(automationPauses)).not.toContain("restored");
});

test("deletion is paused for an hour after a gap without controllers or a clock set back", async () => {
  const deletes = ["seen", "clock"].map((kind) => `${pausePrefix}${kind}`);
  await store.commit({ conditions: [], puts: [], deletes });
  const first = steppedClock();
  await open(first.clock);
  await until(async () => (await store.get(`${pausePrefix}seen`)) !== undefined);
  const seen = JSON.parse((await store.get(`${pausePrefix}seen`))?.value ?? "{}") as { since: number };
  const at = (wall: number) => {
    const { time, clock, pass } = steppedClock();
    time.wall = wall;
    return { clock, pass };
  };
  expect(kinds(await open(at(seen.since + 50 * minute).clock))).not.toContain("clock");
  const ahead = at(seen.since + 40 * 24 * hour);
  const automationPauses = await open(ahead.clock);
  expect(kinds(automationPauses)).toContain("clock");
  expect(automationPauses.list("deletion").map(({ kind }) => kind)).toContain("clock");
  ahead.pass(hour + 1);
  expect(kinds(automationPauses)).not.toContain("clock");
  await automationPauses.release("clock");
});
