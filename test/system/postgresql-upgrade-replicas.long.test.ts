import { ensureImage } from "@holdfast/image/make-image.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, writeRows } from "../faults/acknowledged-writer.ts";
import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 300_000;
/** Enabled by `npm run faults -- --upgrades`. */
const isEnabled = process.env["HOLDFAST_TEST_UPGRADES"] === "1";

describe.skipIf(!isEnabled)("a PostgreSQL of three nodes that is upgraded to another version", () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let shell: CommandLine;
  let orders: RunningService;
  let writer: AcknowledgedWriter;
  let id: string;

  beforeAll(async () => {
    const imagesDir = imagesDirectory(process.env);
    await ensureImage({ imagesDir, recipe: "sid", progress: (line) => console.log(line) });
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    services = createServices(platform);
    shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
    // Two vCPUs, so that pg_upgrade has several jobs.
    const created = { version: "17", plan_name: "tier-2", node_count: 3, replication_mode: "sync" };
    orders = await services.createRunning("orders", { ...created, allowed_cidrs: ["127.0.0.0/8"] });
    ({ id } = orders.service);
    writer = await writeRows(platform, orders, writing.signal);
    await waitUntil("there is a way back", async () => (await services.get(id)).backups?.restorable != null, {
      withinMs: longMs,
      describe: () => services.describe(id),
    });
  }, longMs);
  afterAll(async () => {
    writing.abort();
    shell?.remove();
    await platform?.remove();
  }, longMs);

  const lastOf = async () => (await services.operations(id)).find(({ type }) => type === "upgrade");
  const query = (sql: string) => queryOnce(platform, orders.connection, { password: orders.password }, sql);

  async function writesContinue(): Promise<void> {
    const { acknowledged } = writer;
    await waitUntil("writes continue", () => writer.acknowledged > acknowledged + 5, {
      withinMs: longMs,
      describe: () => services.describe(id),
    });
  }

  /** Queried by the nodes' own names. */
  async function versions(): Promise<string[]> {
    const { nodes } = await services.get(id);
    return Promise.all(
      nodes.map(async ({ hostname: host }) => {
        const connection = { ...orders.connection, host };
        const [row] = await queryOnce<{ server_version: string }>(
          platform,
          connection,
          { password: orders.password },
          "SHOW server_version",
        );
        return row?.server_version.split(".")[0] ?? "";
      }),
    );
  }

  async function allFollow(): Promise<void> {
    const path = (nodeId: string) => `/managed-services/${id}/nodes/${nodeId}/replication-status`;
    const follows = async (nodeId: string) =>
      (await platform.rest.get<{ sync_state: string }>(path(nodeId))).json.sync_state === "streaming";
    await waitUntil(
      "both replicas follow",
      async () => {
        const { nodes, primary_node_id: primary } = withPrimary(await services.get(id));
        const replicas = nodes.filter((node) => node.id !== primary);
        return replicas.length === 2 && (await Promise.all(replicas.map((node) => follows(node.id)))).every(Boolean);
      },
      { withinMs: longMs, everyMs: 500, describe: () => services.describe(id) },
    );
  }

  it(
    "is unchanged when its data cannot be upgraded, and its replicas follow again",
    async () => {
      // A column that 18 does not have.
      await query("CREATE VIEW old_view AS SELECT wal_write FROM pg_stat_wal");
      const { nodes } = await services.get(id);
      const upgrade = await shell.runHere(["services", "upgrade", "orders", "18", "--yes"]);
      expect(upgrade).toMatchObject({ code: 0 });
      await services.settled(id, "Running", longMs);
      const operation = await lastOf();
      expect(operation).toMatchObject({ status: "failed", error: { code: "rolled_back_engine_failed" } });
      expect(operation?.error?.message).toContain("wal_write");
      await writesContinue();
      await allFollow();
      expect(await versions()).toEqual(["17", "17", "17"]);
      expect((await services.get(id)).nodes.map((node) => node.id)).toEqual(nodes.map((node) => node.id));
      await query("DROP VIEW old_view");
      expect(await writer.missing()).toEqual([]);
    },
    2 * longMs,
  );

  it(
    "has its data under the other version, on replicas too, though its primary's machine is killed",
    async () => {
      const primary = (await services.get(id)).primary_node_id;
      const check = await shell.runHere(["services", "upgrade", "orders", "18", "--check"]);
      expect(check.stdout).toMatch(/replicas\s+false/);
      const upgrade = await shell.runHere(["services", "upgrade", "orders", "18", "--yes"]);
      expect(upgrade).toMatchObject({ code: 0 });
      const step = await waitUntil(
        "the data are upgraded",
        async () => {
          const operation = await lastOf();
          return operation?.step === "UpgradeData" || operation?.finished_at != null ? operation.step : undefined;
        },
        { withinMs: longMs, everyMs: 100, describe: () => services.describe(id) },
      );
      expect(step).toBe("UpgradeData");
      const machine = platform.processes().machines.find((each) => each.id === primary);
      if (machine === undefined) throw new Error("the primary has no machine");
      killImmediately(machine.launcher);
      await services.settled(id, "Running", longMs);
      expect(await lastOf()).toMatchObject({ status: "completed", error: null });
      expect(await services.get(id)).toMatchObject({ version: "18", primary_node_id: primary });
      await writesContinue();
      await allFollow();
      expect(await versions()).toEqual(["18", "18", "18"]);
      expect(await writer.missing()).toEqual([]);
    },
    2 * longMs,
  );

  it(
    "fails over to a replica afterwards, without a missing row",
    async () => {
      const { nodes, primary_node_id: before } = withPrimary(await services.get(id));
      const heir = nodes.find((node) => node.id !== before);
      expectStatus(await platform.rest.post(`/managed-services/${id}/nodes/${heir?.id}/failover`), 202);
      await services.settled(id, "Running", longMs);
      expect((await services.get(id)).primary_node_id).toBe(heir?.id);
      await writesContinue();
      writing.abort();
      await writer.done;
      expect(await writer.missing()).toEqual([]);
    },
    longMs,
  );
});
