import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { silentLog } from "@holdfast/common/log.ts";
import { expect, onTestFinished, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { exportReaders } from "@holdfast/testing/servers/export-readers.ts";
import { startExportReceiver } from "@holdfast/testing/servers/export-receiver.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { newConfiguration } from "./configuration/changed-configuration.ts";
import { destinations } from "./destinations/destinations.ts";
import type { LogItem } from "./export-item.ts";
import { bytesOfEntries, createExportMemory, exportMemoryLimits, portionsOfEntries } from "./export-memory.ts";
import { createExportSender } from "./export-sender.ts";
import { createExportShipper, fullBatch } from "./export-shipper.ts";
import { machineTarget } from "./export-targets.ts";
import { monitoredService } from "#services/monitored-services.ts";
import type { MetricsExportObject } from "./metrics-export.ts";

const never = new AbortController().signal;
const { totalBytes, batchBytes } = exportMemoryLimits;

test("memory is reserved first come first served, within the limit", async () => {
  const memory = createExportMemory({ totalBytes: 20, batchBytes: 8, failingPart: 1 / 2 });
  const order: string[] = [];
  const first = await memory.reserve(false, never);
  await memory.reserve(false, never);
  const third = memory.reserve(false, never).then((room) => (order.push("third"), room));
  const fourth = memory.reserve(false, never).then((room) => (order.push("fourth"), room));
  expect(memory.usedBytes).toBe(16);
  first.shrink(5);
  await Promise.resolve();
  expect(order).toEqual([]);
  first.shrink(0);
  const reserved = await third;
  expect(order).toEqual(["third"]);
  reserved.release();
  reserved.release();
  await fourth;
  expect(memory.usedBytes).toBe(16);
});

test("failing integrations use their part only and delay no healthy one", async () => {
  const memory = createExportMemory({ totalBytes: 20, batchBytes: 4, failingPart: 1 / 4 });
  await memory.reserve(true, never);
  let isServed = false;
  void memory.reserve(true, never).then(() => (isServed = true));
  for (let n = 0; n < 4; n += 1) await memory.reserve(false, never);
  expect([memory.usedBytes, isServed]).toEqual([20, false]);
});

test("an aborted reservation leaves the queue", async () => {
  const memory = createExportMemory({ totalBytes: 4, batchBytes: 4, failingPart: 1 });
  const room = await memory.reserve(false, never);
  const caller = new AbortController();
  const waiting = memory.reserve(false, caller.signal);
  caller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  room.release();
  expect(memory.usedBytes).toBe(0);
});

test("portions keep the order, and an oversized entry is a separate portion", () => {
  const entries = [10, 300 << 10, 300 << 10, 600 << 10, 5].map((length) => entryOf("x".repeat(length)));
  expect(portionsOfEntries(entries).map((portion) => portion.map(({ message }) => message.length))).toEqual([
    [10, 300 << 10],
    [300 << 10],
    [600 << 10],
    [5],
  ]);
});

/** A message of the agent's maximum size, with characters of two bytes and characters that JSON escapes. */
const hostileMessage = `${'"\\ж'.repeat(350)}`;
const origin = { serviceId: "s", serviceName: "db", dbType: "postgresql", nodeId: "n" };

function entryOf(message: string): LogItem {
  return { origin, level: "info", message, component: "postgresql", role: "primary", timeMs: Date.now() };
}

test("64 streams with hanging destinations use at most 64 MiB, counted and measured", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const reservedBytes = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  let requests = 0;
  // The receiver reads nothing, so its memory does not count.
  const receiver = await startExportReceiver(() => "never");
  onTestFinished(() => receiver.close());
  const egress = loopbackEgress();
  onTestFinished(() => egress.close());
  const destination = destinations.log_saas;
  const checked = newConfiguration(destination, exportReaders.log_saas.configuration(receiver.url));
  if (!checked.ok) throw new Error("the configuration is invalid");
  const vendors = { apm: "", cloud: "", logSaas: "" };
  const memory = createExportMemory();
  let max = 0;
  const sender = createExportSender({ egress: { users: egress, operators: egress }, vendors });
  const shipper = createExportShipper({
    samples: { next: () => Promise.reject(new Error("nobody asks for samples")) },
    logs: {
      // As messages from the network: no two share memory.
      next: async (_target, position, count) => ({
        items: Array.from({ length: count }, (_, n) => entryOf(Buffer.from(`${hostileMessage}${n}`).toString("utf8"))),
        position: `${position}1`,
        hasMore: true,
        expiredSegments: 0,
      }),
    },
    states: { advance: async () => undefined, drop: async () => undefined },
    memory,
    async send(request, target, limits) {
      requests += 1;
      max = Math.max(max, memory.usedBytes);
      return sender(request, target, limits);
    },
    vendors,
    clock: { now: Date.now, monotonicMs: () => performance.now() },
    log: silentLog,
    wait: async () => undefined,
  });
  const before = reservedBytes();
  const stop = new AbortController();
  const owner = monitoredService(runningService({ id: "s", name: "db", organizationId: "o" }));
  const machines = [machineTarget(owner, "n")];
  const ticks = Array.from({ length: 64 }, (_, n) =>
    shipper
      .ship("logs", {
        integration: { metadata: { id: `e${n}` }, spec: { since: 0 } } as MetricsExportObject,
        target: { destination, configuration: checked.configuration, organizationId: `o${n}` },
        targets: { machines, owners: new Map(), overridden: [] },
        run: { epoch: 0, cursors: new Map(), batch: { ...fullBatch } },
        standing: "healthy",
        signal: stop.signal,
        late: never,
      })
      .catch(() => undefined),
  );
  await until(() => requests >= 6 && memory.usedBytes > totalBytes - batchBytes);
  const reserved = reservedBytes() - before;
  expect(max).toBeLessThanOrEqual(totalBytes);
  expect(reserved).toBeLessThan(totalBytes);
  // Every batch was counted before it was sent: the count is not less than the real use.
  expect(reserved).toBeLessThan(memory.usedBytes);
  expect(bytesOfEntries([entryOf(hostileMessage)])).toBeGreaterThan(6 * hostileMessage.length);
  stop.abort(new Error("enough"));
  await Promise.all(ticks);
  expect(memory.usedBytes).toBe(0);
});
