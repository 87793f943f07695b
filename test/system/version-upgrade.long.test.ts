import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, writeValues } from "../faults/acknowledged-writer.ts";
import { commandOnce } from "@holdfast/testing/api/clients.ts";
import { type ServiceJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 360_000;

interface UpgradeJson {
  readonly from_version: string;
  readonly to_version: string;
  readonly findings: readonly { readonly code: string; readonly blocking: boolean }[];
  readonly operation: { readonly id: string; readonly type: string } | null;
}

const missing = await requireRecipes(import.meta.filename, "sid");
const skipped = missing === undefined ? "" : ` (skipped: ${missing})`;

describe.skipIf(missing !== undefined)(`a Valkey that is upgraded to another version${skipped}`, () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let cache: RunningService;
  let writer: AcknowledgedWriter;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    cache = await services.createRunning("cache", { database_type: "valkey", version: "8.1", node_count: 2 });
    writer = writeValues(platform, cache, writing.signal);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
  });

  const requestUpgrade = (id: string, body: object) =>
    platform.rest.post<UpgradeJson>(`/managed-services/${id}/upgrade`, body);
  const lastOf = async (id: string) => (await services.operations(id)).find(({ type }) => type === "upgrade");

  /** Version of each node's engine, queried by the node's own name. */
  async function versions({ service: { id }, connection, password }: RunningService): Promise<string[]> {
    const { nodes } = await services.get(id);
    return Promise.all(
      nodes.map(async ({ hostname: host }) => {
        const info = await commandOnce(platform, { ...connection, host }, { password }, "INFO", "server");
        return /valkey_version:(\d+)/.exec(String(info))?.[1] ?? "";
      }),
    );
  }

  it("previews the effects of an upgrade, and changes nothing", async () => {
    const { id } = cache.service;
    const { json } = expectStatus(await requestUpgrade(id, { version: "9", check_only: true }), 200);
    expect(json).toMatchObject({ from_version: "8.1", to_version: "9", operation: null });
    expect(json.findings.filter(({ blocking }) => blocking)).toEqual([]);
    expect(json.findings.map(({ code }) => code)).toContain("connections");
    expectStatus(await requestUpgrade(id, { version: "8.1" }), 422);
    expectStatus(await requestUpgrade(id, { version: "1" }), 400);
    expect(await services.get(id)).toMatchObject({ version: "8.1", operation: null });
  });

  it(
    "upgrades the replica first, then the old primary after a switchover, though controllers are killed",
    async () => {
      const { id } = cache.service;
      const { primary_node_id: primary } = withPrimary(await services.get(id));
      const { json } = expectStatus(await requestUpgrade(id, { version: "9" }), 202);
      expect(json.operation).toMatchObject({ type: "upgrade" });
      await waitUntil(
        "the replica is down, or back",
        async () =>
          (await services.get(id)).nodes.some(({ role, status }) => role === "replica" && status !== "Running"),
        { describe: () => services.describe(id) },
      );
      for (const pid of platform.processes().controllers) killImmediately(pid);
      await waitUntil(
        "nothing is done any more",
        async () => {
          const found = await platform.rest.insist<ServiceJson>("GET", `/managed-services/${id}`);
          return found.json.operation === null;
        },
        { withinMs: longMs, describe: () => services.describe(id) },
      );
      expect(await lastOf(id)).toMatchObject({ status: "completed", error: null });
      const after = await services.settled(id, "Running", longMs);
      expect(after.version).toBe("9");
      expect(after.primary_node_id).not.toBe(primary);
      expect(await versions(cache)).toEqual(["9", "9"]);
      const before = writer.acknowledged;
      await waitUntil("writes continue", async () => writer.acknowledged > before + 5);
    },
    longMs,
  );

  it("has lost no value that was acknowledged", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });

  it(
    "retains the data of a single node",
    async () => {
      const alone = await services.createRunning("alone", { database_type: "valkey", version: "8.1" });
      const { connection, password } = alone;
      await commandOnce(platform, connection, { password }, "SET", "kept", "yes");
      const path = `/managed-services/${alone.service.id}/backups`;
      const { id: backupId } = expectStatus(await platform.rest.post<{ id: string }>(path), 202).json;
      await waitUntil("it has a backup", async () => {
        const { json } = await platform.rest.insist<{ status: string }>("GET", `${path}/${backupId}`);
        return json.status === "completed";
      });
      expectStatus(await requestUpgrade(alone.service.id, { version: "9" }), 202);
      await services.settled(alone.service.id, "Running", longMs);
      expect(await lastOf(alone.service.id)).toMatchObject({ status: "completed", error: null });
      expect(await versions(alone)).toEqual(["9"]);
      expect(String(await commandOnce(platform, connection, { password }, "GET", "kept"))).toBe("yes");
      expectStatus(await requestUpgrade(alone.service.id, { version: "8.1" }), 422);
    },
    longMs,
  );
});
