import { rm } from "node:fs/promises";
import { join } from "node:path";
import { OrganizationService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { openValkey, queryOnce } from "@holdfast/testing/api/clients.ts";
import { fillDisk, freeBytes } from "@holdfast/testing/machines/fill-disk.ts";
import { asOperator, createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";

interface StorageEvent {
  readonly data: { readonly used_pct: number; readonly node_id: string; readonly reason: string };
}

const mib = 1024 ** 2;
const longMs = 600_000;

// Only root gives each machine a separate disk that can be full.
describe.skipIf(!asRoot)("a full disk", () => {
  let platform: Platform;
  let services: Services;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
  }, longMs);
  afterAll(() => platform?.remove());

  const machine = (nodeId: string) => platform.processes().machines.find((each) => each.id === nodeId);
  const data = (nodeId: string) => pathInside(machine(nodeId)?.agent, "/data");
  const percentsOf = async (id: string, type: string) =>
    expectStatus(
      await platform.rest.get<{ events: StorageEvent[] }>(`/managed-services/${id}/events?type=${type}`),
      200,
    ).json.events.map((event) => event.data);
  const expand = async (id: string, storageSizeGb: number) => {
    const body = { storage_size_gb: storageSizeGb };
    expectStatus(await platform.rest.post(`/managed-services/${id}/storage/expand`, body), 202);
    return services.settled(id, "Running");
  };
  const follows = (id: string, nodeId: string) =>
    waitUntil(
      "the replica follows",
      async () => {
        const path = `/managed-services/${id}/nodes/${nodeId}/replication-status`;
        const { json } = await platform.rest.get<ReplicationStatus>(path);
        return json.connected && json.sync_state === "streaming";
      },
      { everyMs: 300, describe: () => services.describe(id) },
    );

  async function mayHave(storageGb: number): Promise<void> {
    const organizations = createOrganizations(platform);
    const organizationId = await organizations.first();
    organizations.close();
    const body = { organizationId, storageGb, updateMask: { paths: ["storage_gb"] } };
    await asOperator(platform, OrganizationService, (rpcs) => rpcs.updateQuota(body));
  }

  describe("of a service with a replica", () => {
    let pair: RunningService;
    let id: string;
    let primary: string;
    let replica: string;
    beforeAll(async () => {
      pair = await services.createRunning("pair", { node_count: 2 });
      ({ id, primary_node_id: primary } = withPrimary(pair.service));
      replica = pair.service.nodes.find((node) => node.id !== primary)?.id ?? "";
      await follows(id, replica);
      await query("CREATE TABLE orders (line text STORAGE EXTERNAL)");
    }, longMs);

    const query = (sql: string) => queryOnce<{ rows: number }>(platform, pair.connection, pair, sql);
    /** 16 MB. */
    const insert = () =>
      query("INSERT INTO orders SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 500000)");
    const rowsOn = async (nodeId: string) => {
      const { nodes } = await services.get(id);
      const host = nodes.find((node) => node.id === nodeId)?.hostname ?? "";
      const [row] = await queryOnce<{ rows: number }>(
        platform,
        { ...pair.connection, host },
        pair,
        "SELECT count(*)::int AS rows FROM orders",
      );
      return row?.rows;
    };

    it(
      "of a replica is reported, blocks no write, and recovers by itself with more storage",
      async () => {
        await fillDisk(data(replica));
        await waitUntil("its event is emitted", async () =>
          (await percentsOf(id, "service.storage_low")).some(({ node_id: node }) => node === replica),
        );
        for (let round = 0; round < 5; round += 1) await insert();
        expect(await percentsOf(id, "service.writes_blocked")).toEqual([]);
        expect(await services.get(id)).toMatchObject({ status: "Running", primary_node_id: primary, term: 1 });
        await expand(id, 2);
        await follows(id, replica);
        await waitUntil("all rows are there", async () => (await rowsOn(replica)) === 5, {
          describe: () => services.describe(id),
        });
      },
      longMs,
    );

    it(
      "of the primary causes no failover, even when its engine ends",
      async () => {
        await rm(join(data(replica), "filler"));
        await fillDisk(data(primary));
        await waitUntil("writes are blocked", async () => (await percentsOf(id, "service.writes_blocked")).length > 0, {
          describe: () => services.describe(id),
        });
        expect(await percentsOf(id, "service.writes_blocked")).toMatchObject([{ node_id: primary }]);
        const engine = machine(primary)?.engine ?? 0;
        killImmediately(engine);
        await waitUntil("the engine has recovered", () => ![undefined, engine].includes(machine(primary)?.engine));
        await expand(id, 3);
        await waitUntil("writes are taken", async () => (await insert(), true), {
          describe: () => services.describe(id),
        });
        expect(await services.get(id)).toMatchObject({ primary_node_id: primary, term: 1 });
        await follows(id, replica);
        expect(await percentsOf(id, "service.failover_started")).toEqual([]);
        await services.delete(id);
      },
      longMs,
    );
  });

  it(
    "grows by itself up to the cap, and is reported when its quota prevents that",
    async () => {
      const body = { database_type: "valkey", storage_autoscale: { enabled: true, max_gb: 3 } };
      const cache = await services.createRunning("cache", body);
      const { id } = cache.service;
      const [{ id: node } = { id: "" }] = cache.service.nodes;
      expect(cache.service).toMatchObject({ storage_autoscale: { enabled: true, max_gb: 3 } });
      const patch = (max_gb: number) =>
        platform.rest.patch(`/managed-services/${id}`, { storage_autoscale: { enabled: true, max_gb } });
      expectStatus(await patch(0), 400);
      const grown = (gb: number) =>
        waitUntil(
          `it has ${gb} GB`,
          async () => {
            const { storage_size_gb: size, operation } = await services.get(id);
            return size === gb && operation === null;
          },
          { everyMs: 300, describe: () => services.describe(id) },
        );
      for (const gb of [2, 3]) {
        await fillDisk(data(node), 110 * mib * (gb - 1));
        await grown(gb);
        await waitUntil("its file system has it", async () => (await freeBytes(data(node))) > 500 * mib);
      }
      expect((await services.operations(id)).filter(({ type }) => type === "expand")).toHaveLength(2);

      await fillDisk(data(node));
      await waitUntil(
        "writes are blocked at the cap",
        async () => (await percentsOf(id, "service.writes_blocked")).length > 0,
      );
      expect(await services.get(id)).toMatchObject({ storage_size_gb: 3, operation: null });

      await mayHave(3);
      expectStatus(await patch(10), 200);
      const [failed] = await waitUntil(
        "the failed growth is reported",
        async () => {
          const events = await percentsOf(id, "service.autoscale_failed");
          return events.length > 0 && events;
        },
        { describe: () => services.describe(id) },
      );
      expect(failed?.reason).toContain("storage");
      await mayHave(100);
      await expand(id, 5);
      const client = await waitUntil("it is open once it is larger", () =>
        openValkey(platform, cache.connection, cache),
      );
      await waitUntil("writes are taken", async () => (await client.set("after", "1")) === "OK");
      client.disconnect();
      await services.delete(id);
    },
    longMs,
  );
});
