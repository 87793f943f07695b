import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { drilled, noDrillMachines } from "@holdfast/testing/platform/drills.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Client } from "@opensearch-project/opensearch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSearch, statusOf } from "./opensearch/opensearch-service.ts";

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly kind: string;
}

const skip = await requireRecipes(import.meta.filename, "opensearch");
const longMs = 900_000;

describe.skipIf(skip !== undefined)("backups of an OpenSearch", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let logs: RunningService;
  let client: Client;
  let backup: BackupJson;
  const clients: Client[] = [];

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const { id } = await services.create("logs", { database_type: "opensearch" });
    await services.settled(id, "Running", longMs);
    logs = await services.open(id);
    client = open();
  }, longMs);
  afterAll(async () => {
    for (const each of clients) await each.close();
    await platform?.remove();
  }, longMs);

  function open(login: Parameters<typeof openSearch>[2] = {}, of = logs): Client {
    const opened = openSearch(platform, of, login);
    clients.push(opened);
    return opened;
  }
  const path = (rest = "", of = logs) => `/managed-services/${of.service.id}${rest}`;
  const reveal = async (user: string, of = logs) => ({
    user,
    password: expectStatus(
      await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`, of)),
      200,
    ).json.password,
  });
  const countIn = async (index: string, of: Client) => (await of.count({ index })).body.count;

  async function takeBackup(): Promise<BackupJson> {
    const { id } = expectStatus(await platform.rest.post<BackupJson>(path("/backups")), 202).json;
    const ended = async () => {
      const found = expectStatus(await platform.rest.get<BackupJson>(path(`/backups/${id}`)), 200).json;
      return ["completed", "failed"].includes(found.status) ? found : undefined;
    };
    const description = () => services.describe(logs.service.id);
    return waitUntil("the backup has ended", ended, { withinMs: longMs, describe: description });
  }

  async function restored(rest: string, body: object): Promise<RunningService> {
    const { id } = expectStatus(await platform.rest.post<ServiceJson>(path(rest), body), 202).json;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  it("complete while documents are written", async () => {
    expectStatus(await platform.rest.post(path("/database-users"), { username: "reader", role: "readonly" }), 201);
    await client.indices.create({
      index: "orders",
      body: { settings: { number_of_shards: 2 }, aliases: { sales: {} } },
    });
    await client.indices.create({ index: ".hidden", body: { settings: { hidden: true } } });
    await client.ingest.putPipeline({
      id: "loud",
      body: { processors: [{ uppercase: { field: "state" } }] },
    });
    const template = { index_patterns: ["events*"], data_stream: {} };
    await client.indices.putIndexTemplate({ name: "events", body: template });
    await client.index({ index: "events-web", refresh: true, body: { "@timestamp": "2026-01-01T00:00:00Z" } });
    const lines = Array.from({ length: 500 }, (_, n) => [
      { index: { _index: "orders", _id: String(n) } },
      { number: n },
    ]);
    expect((await client.bulk({ refresh: true, body: lines.flat() })).body.errors).toBe(false);
    const writing = new AbortController();
    let written = 0;
    const load = (async () => {
      while (!writing.signal.aborted) {
        await client.index({ index: "load", id: String(written), body: { written } });
        written += 1;
      }
    })();
    await waitUntil("documents are written", () => written > 20, { withinMs: longMs });
    backup = await takeBackup();
    const later = written + 10;
    await waitUntil("writes continue", () => written > later, { withinMs: longMs });
    writing.abort();
    await load;
    expect(backup).toMatchObject({ status: "completed", kind: "snapshot" });
    await client.index({ index: "orders", id: "later", refresh: true, body: {} });
  });

  it("are restored with indices, aliases, data streams, templates and pipelines, and users under new passwords", async () => {
    const copy = await restored(`/backups/${backup.id}/restore`, { target_service_name: "before" });
    const copied = open({}, copy);
    expect(await countIn("sales", copied)).toBe(500);
    expect((await copied.get({ index: "orders", id: "7" })).body._source).toEqual({ number: 7 });
    expect(await countIn("events-web", copied)).toBe(1);
    await copied.index({ index: "events-web", refresh: true, body: { "@timestamp": "2026-01-02T00:00:00Z" } });
    expect(await countIn(".hidden", copied)).toBe(0);
    expect((await copied.ingest.getPipeline()).body).toHaveProperty("loud");
    const [loaded, all] = [await countIn("load", copied), await countIn("load", client)];
    expect(loaded).toBeGreaterThan(20);
    expect(loaded).toBeLessThan(all);
    const [login, former] = [await reveal("reader", copy), await reveal("reader")];
    expect(login.password).not.toBe(former.password);
    const reader = open(login, copy);
    expect(await countIn("orders", reader)).toBe(500);
    expect(await statusOf(reader.index({ index: "orders", body: {} }))).toBe(403);
    expect(await statusOf(open(former, copy).info())).toBe(401);
    expect(await statusOf(open({ password: logs.password }, copy).info())).toBe(401);
    await services.verb(copy.service.id, "restart", longMs);
    // A restart ends the connections of the former client.
    expect(await countIn("orders", open({}, copy))).toBe(500);
    await services.delete(copy.service.id);
  });

  it("are restored by a time: the newest one at or before it", async () => {
    const at = new Date().toISOString();
    const newest = await takeBackup();
    expect(newest.status).toBe("completed");
    const copy = await restored("/backups/restore", { target_service_name: "at-a-time", restore_point: at });
    const copied = open({}, copy);
    expect(await countIn("orders", copied)).toBe(500);
    await services.delete(copy.service.id);
    const early = { target_service_name: "early", restore_point: "2020-01-01T00:00:00Z" };
    expectStatus(await platform.rest.post(path("/backups/restore"), early), 422);
  });

  it("are drilled: all shards are opened", async () => {
    const { id } = expectStatus(await platform.rest.post<{ id: string }>(path("/backups/drill")), 202).json;
    const drill = await drilled(platform, logs.service.id, id);
    expect(drill).toMatchObject({ status: "completed", error: null });
    expect(drill.checks.map(({ name, passed }) => [name, passed])).toEqual(
      expect.arrayContaining([
        ["restored", true],
        ["contents", true],
      ]),
    );
    await noDrillMachines(platform);
  });
});
