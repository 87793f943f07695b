import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, writeRows } from "../faults/acknowledged-writer.ts";
import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  type RunningService,
  expectStatus,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { type ChangingImages, createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import {
  createMaintenanceRequests,
  type MaintenanceRequests,
} from "@holdfast/testing/machines/maintenance-requests.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 360_000;

describe("a PostgreSQL of two nodes that gets another image during writes", () => {
  const writing = new AbortController();
  let images: ChangingImages;
  let platform: Platform;
  let services: Services;
  let requests: MaintenanceRequests;
  let writer: AcknowledgedWriter;
  let orders: RunningService;
  let id: string;
  beforeAll(async () => {
    images = createChangingImages({ looksOlder: true });
    platform = await startPlatform({ environment: { HOLDFAST_CACHE: images.cache } });
    services = createServices(platform);
    requests = createMaintenanceRequests(platform, services);
    orders = await services.createRunning("orders", { node_count: 2, replication_mode: "sync" });
    ({ id } = orders.service);
    writer = await writeRows(platform, orders, writing.signal);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
    images?.close();
  });

  const engineOf = (nodeId: string) => platform.processes().machines.find((each) => each.id === nodeId)?.engine;
  async function writesContinue(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes continue", async () => writer.acknowledged > before + 5);
  }

  it(
    "updates the replica first, then the old primary after a switchover, though controllers are killed",
    async () => {
      await images.choose(images.valid);
      await requests.pending(id, images.valid);
      const { primary_node_id: primary } = withPrimary(await services.get(id));
      const before = engineOf(primary);
      const { id: operationId } = expectStatus(await requests.apply(id), 202).json;
      await waitUntil("the replica's machine is down, or back", async () => {
        const { status, nodes } = await services.get(id);
        expect(status).toBe("Running");
        return nodes.some((node) => node.role === "replica" && node.status !== "Running");
      });
      // The primary serves from its old image.
      expect(engineOf(primary)).toBe(before);
      for (const pid of platform.processes().controllers) killImmediately(pid);
      expect(await requests.ended(id, operationId)).toMatchObject({ status: "completed", error: null });
      const after = await services.settled(id, "Running");
      expect(after.primary_node_id).not.toBe(primary);
      expect(await requests.get(id)).toMatchObject({ image: images.valid, updates: [] });
      expect(after.nodes.map(({ status }) => status)).toEqual(["Running", "Running"]);
      await writesContinue();
    },
    longMs,
  );

  it(
    "recreates a replica that the image damages, and never updates the primary",
    async () => {
      const { primary_node_id: primary, nodes, term } = withPrimary(await services.get(id));
      const engine = engineOf(primary);
      await images.choose(images.broken);
      await requests.pending(id, images.broken);
      const applied = await requests.apply(id, { accept_text_order_change: true });
      const ended = await requests.ended(id, expectStatus(applied, 202).json.id);
      expect(ended).toMatchObject({ status: "failed", error: { code: "rolled_back_engine_failed" } });
      const after = await services.settled(id, "Running");
      expect(after).toMatchObject({ primary_node_id: primary, term });
      expect(engineOf(primary)).toBe(engine);
      expect(after.nodes).toHaveLength(2);
      expect(after.nodes.map((node) => node.id)).not.toEqual(nodes.map((node) => node.id));
      expect(await requests.get(id)).toMatchObject({ image: images.valid });
      await writesContinue();
    },
    longMs,
  );

  it("has lost no acknowledged row", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });
});
