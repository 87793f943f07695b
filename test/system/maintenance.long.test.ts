import { keeperProtocol } from "@holdfast/common/keeper-protocol.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRows } from "../faults/acknowledged-writer.ts";
import { killAtImageStep } from "../faults/image-kills.ts";
import { createChangingImages, type ChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import {
  createMaintenanceRequests,
  type MaintenanceRequests,
} from "@holdfast/testing/machines/maintenance-requests.ts";
import { openEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { preparedDisks, type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import type { PageJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface EventJson {
  readonly event_type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const longMs = 180_000;

/** One service over three images: the second one works, the third one has no engine. */
describe("maintenance of a real service", () => {
  let images: ChangingImages;
  let platform: Platform;
  let services: Services;
  let requests: MaintenanceRequests;
  let running: RunningService;
  let id: string;
  beforeAll(async () => {
    images = createChangingImages({ looksOlder: true });
    platform = await startPlatform({ environment: { ...preparedDisks, HOLDFAST_CACHE: images.cache } });
    services = createServices(platform);
    requests = createMaintenanceRequests(platform, services);
    running = await services.createRunning("kept");
    id = running.service.id;
    // Ordered by a library of the image.
    await query(`CREATE TABLE kept (line text COLLATE "de-x-icu")`);
    await query("INSERT INTO kept VALUES ('before')");
  }, longMs);
  afterAll(async () => {
    await platform?.remove();
    images?.close();
  });

  const query = (sql: string) => queryOnce(platform, running.connection, { password: running.password }, sql);
  const maintenance = () => requests.get(id);
  const apply = (body = {}) => requests.apply(id, body);

  it("has nothing to do where it runs from the newest image with all its parameters", async () => {
    expect(await maintenance()).toMatchObject({ image: images.first, updates: [] });
    expect(expectStatus(await apply(), 409).json.code).toBe("nothing_pending");
  });

  it(
    "applies an image and pending parameters with one restart, though its controller is killed",
    async () => {
      const change = { parameters: { max_connections: "77" } };
      expectStatus(await platform.rest.patch(`/managed-services/${id}/configuration`, change), 200);
      await images.choose(images.valid);
      const found = await requests.pending(id, images.valid);
      expect(found.updates).toMatchObject([
        { kind: "engine_minor", from: "17.0", to: found.engine_version, blocked_reason: null },
        { id: "restart", kind: "restart" },
      ]);
      // A paused agent does not stop its engine, so the controller is killed during that step.
      const agents = platform.processes().machines.flatMap((machine) => machine.agents);
      expect(agents).toHaveLength(1);
      for (const pid of agents) killImmediately(pid, "SIGSTOP");
      let operationId: string;
      try {
        const responses = await Promise.all([apply(), apply()]);
        const [first, second] = responses.map((response) => expectStatus(response, 202).json);
        expect(second?.id).toBe(first?.id);
        operationId = first?.id ?? "";
        await waitUntil("it is under way", async () => (await requests.operation(operationId)).step === "StopEngine", {
          describe: () => services.describe(id),
        });
        expect(await services.get(id)).toMatchObject({ status: "Upgrading", operation: { id: operationId } });
        for (const pid of platform.processes().controllers) killImmediately(pid);
      } finally {
        for (const pid of agents) killImmediately(pid, "SIGCONT");
      }
      expect((await requests.ended(id, operationId)).status).toBe("completed");
      expect(await services.settled(id, "Running")).toMatchObject({ pending_updates: [] });
      expect(await maintenance()).toMatchObject({ image: images.valid, updates: [] });
      expect(await query("SELECT line, current_setting('max_connections') AS most FROM kept")).toEqual([
        { line: "before", most: "77" },
      ]);
    },
    longMs,
  );

  it.each([
    { step: "StopEngine", victim: "agent" },
    { step: "SetupAgent", victim: "keeper" },
  ] as const)(
    "ends with all writes and queue messages, when the $victim is killed at $step",
    async (kill) => {
      const stop = new AbortController();
      const writer = await writeRows(platform, running, stop.signal);
      const queue = await startQueueWorkload(platform, id, `carried-${kill.victim}`);
      try {
        const both = [images.valid, images.equal] as const;
        await killAtImageStep(
          { platform, services, service: running, images: { both, choose: images.choose }, writer },
          kill,
        );
      } finally {
        stop.abort();
        await writer.done;
      }
      expect(await writer.missing()).toEqual([]);
      await queue.check();
    },
    longMs,
  );

  it(
    "confirms changes of text order; rolls an image back whose engine does not start, and avoids it later",
    async () => {
      await images.choose(images.broken);
      const [update] = (await requests.pending(id, images.broken)).updates;
      expect(update).toMatchObject({ kind: "image", changes_text_order: true, apply_at: null });
      expect(update?.blocked_reason).toMatch(/ICU \S+ to 99\.1/);
      expect(expectStatus(await apply(), 409).json.detail).toContain("accept_text_order_change");
      const { id: operationId } = expectStatus(await apply({ accept_text_order_change: true }), 202).json;
      const ended = await requests.ended(id, operationId);
      expect(ended.status).toBe("failed");
      expect(ended.error).toMatchObject({ code: "rolled_back_engine_failed" });
      expect(ended.error?.message).toContain("with all its data");
      await services.settled(id, "Running");
      const after = await maintenance();
      expect(after).toMatchObject({ image: images.valid, updates: [{ id: images.broken, apply_at: null }] });
      expect(after.updates[0]?.blocked_reason).toContain("has no postgresql 17");
      await query("INSERT INTO kept VALUES ('after')");
      expect(await query("SELECT line FROM kept ORDER BY line")).toEqual([{ line: "after" }, { line: "before" }]);
    },
    longMs,
  );

  it("has reported all of it in events", async () => {
    const events = await waitUntil("the last one is recorded", async () => {
      const { json } = await platform.rest.get<PageJson<"events", EventJson>>(
        `/managed-services/${id}/events?limit=200`,
      );
      const maintenanceEvents = json.events.filter(({ event_type }) => event_type.startsWith("service.maintenance"));
      return (
        maintenanceEvents.some(({ event_type }) => event_type === "service.maintenance_failed") && maintenanceEvents
      );
    });
    const completed = ["service.maintenance_started", "service.maintenance_completed"];
    const failed = ["service.maintenance_started", "service.maintenance_failed"];
    const types = events.map(({ event_type }) => event_type);
    // The ones in between ended under kills, in either way.
    expect(types).toHaveLength(8);
    expect([...types.slice(0, 2), ...types.slice(-2)]).toEqual([...completed, ...failed]);
    expect(events[1]?.data).toMatchObject({ update_ids: [images.valid, "restart"], automatic: false });
    expect(events.at(-1)?.data).toMatchObject({ update_ids: [images.broken], rolled_back: true });
  });

  it(
    "restarts the machine over the same data for a keeper that is newer than the reported one",
    async () => {
      const update = `keeper-${keeperProtocol}`;
      expect((await maintenance()).updates.map(({ kind }) => kind)).not.toContain("keeper");
      const before = await changedSessions(platform, { keeperProtocol: 3 });
      const found = await requests.pending(id, update);
      expect(found.updates).toContainEqual(expect.objectContaining({ id: update, from: "3", blocked_reason: null }));
      const { id: operationId } = expectStatus(await apply({ update_ids: [update] }), 202).json;
      expect((await requests.ended(id, operationId)).status).toBe("completed");
      await services.settled(id, "Running");
      expect((await maintenance()).updates.map(({ kind }) => kind)).not.toContain("keeper");
      const after = await changedSessions(platform, {});
      expect([...after.values()]).toEqual([...before.values()].map(() => expect.objectContaining({ keeperProtocol })));
      for (const [key, { bootId }] of after) expect(bootId).not.toBe(before.get(key)?.bootId);
      expect(await query("SELECT line FROM kept ORDER BY line")).toEqual([{ line: "after" }, { line: "before" }]);
    },
    longMs,
  );
});

interface SessionJson {
  readonly bootId: string;
  readonly keeperProtocol: number;
}

/**
 * Sessions of agents in the controllers, by key, with this change from now on: the agent of a machine that was just
 * started.
 */
async function changedSessions(platform: Platform, change: Partial<SessionJson>): Promise<Map<string, SessionJson>> {
  const etcd = openEtcd(platform.directory);
  try {
    const all = await etcd.raw.getAll().prefix("").strings();
    const sessions = Object.entries(all).filter(([key]) => key.includes("/session/"));
    const sessionsByKey = new Map<string, SessionJson>();
    for (const [key, value] of sessions) {
      const facts = JSON.parse(value) as SessionJson;
      sessionsByKey.set(key, facts);
      await etcd.raw
        .put(key)
        .value(JSON.stringify({ ...facts, ...change }))
        .ignoreLease()
        .exec();
    }
    return sessionsByKey;
  } finally {
    etcd.raw.close();
  }
}
