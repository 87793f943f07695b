import { setTimeout as delay } from "node:timers/promises";
import { destinationTypes } from "@holdfast/controller/export/metrics-export.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import {
  type AdditionalController,
  processOfPort,
  startAdditionalController,
} from "@holdfast/testing/platform/additional-controller.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { storedSamples } from "@holdfast/testing/platform/stored-samples.ts";
import { holesIn } from "@holdfast/testing/servers/export-holes.ts";
import { readKey } from "@holdfast/testing/servers/export-items.ts";
import { exportReaders, type ReadItem } from "@holdfast/testing/servers/export-readers.ts";
import {
  type ExportArrival,
  type ExportReceiver,
  type ExportReply,
  startExportReceiver,
} from "@holdfast/testing/servers/export-receiver.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface ExportJson {
  readonly id: string;
  readonly created_at: string;
  readonly consecutive_failures: number;
}

const path = "/api/v1/metrics-exports";
const reader = exportReaders.prometheus_remote_write;

describe("two controllers, one of which exports", () => {
  let platform: Platform;
  let beside: AdditionalController;
  let receiver: ExportReceiver;
  let services: Services;
  let serviceId: string;
  let createdAtMs: number;
  const received: (ReadItem & { readonly pid: number | undefined; readonly atMs: number })[] = [];
  let hook: (arrival: ExportArrival, pid: number | undefined) => ExportReply | undefined = () => undefined;

  const controllers = () => [...platform.processes().controllers, beside.pid];

  function take(arrival: ExportArrival, pid: number | undefined): ExportReply {
    const atMs = Date.now();
    received.push(...(reader.read(arrival) ?? []).map((item) => ({ ...item, pid, atMs })));
    return reader.acceptance(arrival);
  }

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    // First, since the other controller has no machines.
    services = createServices(platform);
    serviceId = (await services.createRunning("first")).service.id;
    beside = await startAdditionalController(platform);
    receiver = await startExportReceiver((arrival) => {
      const pid = processOfPort(arrival.remotePort, controllers());
      return hook(arrival, pid) ?? take(arrival, pid);
    });
    const created = await add("prometheus_remote_write", receiver.url);
    createdAtMs = Date.parse(expectStatus(created, 201).json.created_at);
  });
  afterAll(async () => {
    await beside?.kill9();
    await platform?.remove();
    await receiver?.close();
  });

  const add = (type: (typeof destinationTypes)[number], url: string) =>
    platform.rest.post<ExportJson>(path, {
      service_id: serviceId,
      name: type,
      destination_type: type,
      data_type: type.startsWith("log_") ? "logs" : "metrics",
      export_interval_seconds: 30,
      configuration: exportReaders[type].configuration(url),
    });

  const newest = () => Math.max(0, ...received.map(({ timeMs }) => timeMs));
  const untilNewer = (what: string) => {
    const before = newest();
    return waitUntil(what, () => newest() > before, { withinMs: 120_000 });
  };

  /** First occurrences of each sample, in the order of arrival. */
  function firsts(): ReadItem[][] {
    const firstByKey = new Map(
      received.toReversed().map((item) => [`${item.nodeId} ${item.name} ${item.timeMs}`, item]),
    );
    return [...Map.groupBy([...firstByKey.values()].toReversed(), ({ nodeId, name }) => `${nodeId} ${name}`).values()];
  }

  /** Expects that the receiver has all history since the integration was created, in order. */
  async function expectComplete(): Promise<void> {
    expect(firsts().length).toBeGreaterThan(3);
    for (const series of firsts()) {
      const times = series.map(({ timeMs }) => timeMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
    const arrived = [...received];
    const stored = await storedSamples(platform, serviceId, createdAtMs);
    expect(stored.length).toBeGreaterThanOrEqual(new Set(arrived.map(readKey)).size);
    expect(holesIn(arrived, stored)).toEqual([]);
  }

  /** Kills a controller with SIGKILL; starts it again unless the supervisor does. */
  async function kill(pid: number | undefined): Promise<void> {
    const isBeside = pid === beside.pid;
    killImmediately(pid ?? 0);
    if (isBeside) {
      await beside.kill9();
      await beside.start();
    }
  }

  type Step = readonly [
    when: string,
    hook: (arrival: ExportArrival, pid: number | undefined, die: () => void) => ExportReply | undefined,
  ];
  const steps: readonly Step[] = [
    ["while it sends", (_arrival, _pid, die) => (die(), "never")],
    ["when its batch was taken and it does not know yet", (arrival, pid, die) => (take(arrival, pid), die(), "cut")],
    ["with the answer on its way", (arrival, pid, die) => (setTimeout(die, 1), take(arrival, pid))],
    ["as it moves the cursor", (arrival, pid, die) => (setTimeout(die, 6), take(arrival, pid))],
    ["between two ticks", (arrival, pid, die) => (setTimeout(die, 5_000), take(arrival, pid))],
    ["as it waits for its next try", (_arrival, _pid, die) => (setTimeout(die, 300), { status: 503 })],
  ];

  it.each(steps)(
    "lose nothing and send in order when the owner is killed %s",
    async (_, step) => {
      await untilNewer("it exports");
      const killed = Promise.withResolvers<number | undefined>();
      let isArmed = true;
      hook = (arrival, pid) => {
        if (!isArmed || (reader.read(arrival) ?? []).length === 0) return undefined;
        isArmed = false;
        return step(arrival, pid, () => {
          void kill(pid).catch(() => undefined);
          killed.resolve(pid);
        });
      };
      expect(await killed.promise).toBeDefined();
      hook = () => undefined;
      await untilNewer("another controller exports");
      await untilNewer("it continues to export");
      await expectComplete();
    },
    300_000,
  );

  it("lose and reorder nothing when the owner pauses for half a minute midway through a request", async () => {
    const stopped = Promise.withResolvers<number>();
    let isArmed = true;
    hook = (arrival, pid) => {
      if (!isArmed || pid === undefined) return undefined;
      isArmed = false;
      killImmediately(pid, "SIGSTOP");
      stopped.resolve(pid);
      return take(arrival, pid);
    };
    const pid = await stopped.promise;
    hook = () => undefined;
    const stoppedAt = Date.now();
    try {
      await waitUntil(
        "the other one continues",
        () => received.some((item) => item.atMs > stoppedAt && item.pid !== pid),
        {
          withinMs: 120_000,
        },
      );
      // Time: the length of the pause, in which the controller loses its lease.
      await delay(Math.max(0, stoppedAt + 30_000 - Date.now()));
    } finally {
      killImmediately(pid, "SIGCONT");
    }
    const wokenAt = Date.now();
    const before = newest();
    await untilNewer("the controllers export again");
    await untilNewer("they continue to export");
    await expectComplete();
    const after = received.filter(({ atMs }) => atMs > wokenAt);
    expect(after.filter(({ timeMs }) => timeMs <= before)).toEqual([]);
  }, 300_000);

  it("are not delayed by destinations that never respond", async () => {
    const dead = await startExportReceiver(() => "never");
    try {
      const ids: string[] = [];
      for (const type of destinationTypes) {
        // The vendors' own addresses are not reachable here.
        if (["prometheus_remote_write", "apm_platform", "cloud_monitoring"].includes(type)) continue;
        ids.push(expectStatus(await add(type, dead.url), 201).json.id);
      }
      // An idle engine logs nothing, so nothing would be sent.
      const { connection, password } = await services.open(serviceId);
      const sql = await openPostgresql(platform, connection, { password });
      await sql.query("SELECT 1 / 0").catch(() => undefined);
      await sql.end();
      const failing = async (id: string) =>
        (await platform.rest.get<ExportJson>(`${path}/${id}`)).json.consecutive_failures > 0;
      await waitUntil("all of them fail", async () => (await Promise.all(ids.map(failing))).every(Boolean), {
        withinMs: 240_000,
      });
      const arrivals = () => [...new Set(received.map(({ atMs }) => atMs))];
      const from = arrivals().length;
      await waitUntil("three more ticks", () => arrivals().length >= from + 3, { withinMs: 120_000 });
      const gaps = arrivals()
        .slice(1)
        .map((atMs, index) => atMs - (arrivals()[index] ?? atMs))
        .slice(from - 1);
      expect(Math.max(...gaps)).toBeLessThan(36_000);
      await expectComplete();
    } finally {
      await dead.close();
    }
  }, 480_000);
});
