import { expect, test } from "vitest";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { createProcessMetrics, timed } from "./process-metrics.ts";

test("reports current gauges, with and without a label", async () => {
  const metrics = createProcessMetrics();
  let waiting = 1;
  let keys: readonly (readonly [string, number])[] = [["a", 1]];
  metrics.add({ name: "waiting", help: "What waits", read: () => waiting });
  metrics.add({ name: "queue_keys", help: "Keys", read: () => ({ label: "reconciler", values: keys }) });
  waiting = 7;
  keys = [["b", 2]];
  const text = parseExposition(await metrics.text()).filter(({ name }) => /waiting|queue_keys/.test(name));
  expect(text).toMatchObject([
    { name: "holdfast_waiting", labels: {}, value: 7 },
    { name: "holdfast_queue_keys", labels: { reconciler: "b" }, value: 2 },
  ]);
});

test("counts work by outcome", async () => {
  const metrics = createProcessMetrics();
  const times = metrics.times("call_seconds", "Calls", "call");
  await timed(times, "get", async () => 1);
  await timed(times, "get", async () => Promise.reject(new Error("x")), String).catch(() => undefined);
  const counts = parseExposition(await metrics.text()).filter(({ name }) => name === "holdfast_call_seconds_count");
  expect(counts).toMatchObject([
    { labels: { call: "get", outcome: "ok" }, value: 1 },
    { labels: { call: "get", outcome: "Error: x" }, value: 1 },
  ]);
});
