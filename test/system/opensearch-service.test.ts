import type { AuditLogEntry } from "@holdfast/sdk/index.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
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

interface IndexJson {
  readonly name: string;
  readonly health: string;
  readonly documents: number;
  readonly size_bytes: number;
  readonly shards: number;
}

interface ExportJson {
  readonly id: string;
  readonly consecutive_failures: number;
  readonly dropped: Readonly<Record<string, number>>;
}

interface MetricsJson {
  readonly series: readonly { readonly metric: string; readonly points: readonly unknown[] }[];
}

const skip = await requireRecipes(import.meta.filename, "opensearch");
/** A JVM starts in some seconds, or in some ten beside other tests. */
const longMs = 300_000;

describe.skipIf(skip !== undefined)("a managed OpenSearch", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let logs: RunningService;
  let orders: RunningService;
  let client: Client;
  const clients: Client[] = [];

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const { id } = await services.create("logs", { database_type: "opensearch" });
    orders = await services.createRunning("orders");
    await services.settled(id, "Running", longMs);
    logs = await services.open(id);
    client = open();
  }, longMs);
  afterAll(async () => {
    for (const each of clients) await each.close();
    await platform?.remove();
  });

  function open(login: Parameters<typeof openSearch>[2] = {}): Client {
    const opened = openSearch(platform, logs, login);
    clients.push(opened);
    return opened;
  }
  const path = (rest = "") => `/managed-services/${logs.service.id}${rest}`;
  const reveal = async (user: string) => ({
    user,
    password: expectStatus(
      await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`)),
      200,
    ).json.password,
  });
  const countIn = async (index: string, of: Client = client) => (await of.count({ index })).body.count;

  it("has one port, and a URI with its default user", async () => {
    const { host } = logs.connection;
    expect(logs.connection).toMatchObject({ port: 9_200, uri: `https://app_user@${host}:9200` });
    const { name, version } = (await client.info()).body;
    expect([name, version.number]).toEqual(["node-1", "2.19.4"]);
  });

  it("serves its own API by the service's name: bulk writes, searches, scripts, pipelines and scrolls", async () => {
    const mappings = {
      properties: { text: { type: "text", analyzer: "english" }, rank: { type: "rank_features" } },
    } as const;
    await client.indices.create({ index: "orders", body: { settings: { number_of_shards: 2 }, mappings } });
    await client.ingest.putPipeline({
      id: "loud",
      body: { processors: [{ uppercase: { field: "state" } }] },
    });
    const lines = Array.from({ length: 200 }, (_, n) => [
      { index: { _index: "orders", _id: String(n) } },
      { text: `shipping boxes ${n}`, number: n, state: "new", rank: { heavy: n + 1 } },
    ]);
    const bulk = await client.bulk({ refresh: true, pipeline: "loud", body: lines.flat() });
    expect(bulk.body.errors).toBe(false);
    const found = await client.search({
      index: "orders",
      body: { query: { match: { text: "box" } }, size: 7 },
      scroll: "1m",
    });
    expect(found.body.hits.hits.length).toBe(7);
    const next = await client.scroll({ body: { scroll_id: found.body._scroll_id ?? "", scroll: "1m" } });
    expect(next.body.hits.hits.length).toBe(7);
    const ranked = await client.search({
      index: "orders",
      body: { size: 1, query: { rank_feature: { field: "rank.heavy", linear: {} } }, track_total_hits: true },
    });
    expect(ranked.body.hits.hits[0]).toMatchObject({ _id: "199", _source: { state: "NEW" } });
    const script = { source: "ctx._source.number += params.by", params: { by: 1_000 } };
    await client.update({ index: "orders", id: "7", refresh: true, body: { script } });
    expect((await client.get({ index: "orders", id: "7" })).body._source).toMatchObject({ number: 1_007 });
  });

  it("has users with the rights of their roles, and none of them reaches users, settings or snapshots", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    const reader = open(await reveal("reader"));
    expect(await countIn("orders", reader)).toBe(200);
    const document = { index: "orders", id: "new", body: {} };
    expect(await statusOf(reader.index(document))).toBe(403);
    expect((await reader.cluster.health()).body.number_of_nodes).toBe(1);
    const writer = open(await reveal("writer"));
    expect(await statusOf(writer.index(document))).toBeUndefined();
    expect(await statusOf(writer.indices.delete({ index: "orders" }))).toBe(403);
    for (const refused of [
      () => client.security.getUsers(),
      () => client.cluster.putSettings({ body: { persistent: { "cluster.max_shards_per_node": 7 } } }),
      () => client.snapshot.getRepository({}),
      () => client.indices.delete({ index: "*" }),
      () => client.search({ index: ".opendistro_security" }),
    ])
      expect(await statusOf(refused())).toBe(403);
    expectStatus(await platform.rest.delete(path("/database-users/writer")), 204);
    const isRefused = async () => (await statusOf(writer.info())) === 401;
    await waitUntil("a dropped user is refused", isRefused);
  });

  it("has indices that are listed and deleted by the API", async () => {
    await client.indices.create({ index: "old" });
    const list = async () =>
      expectStatus(await platform.rest.get<PageJson<"indices", IndexJson>>(path("/indices")), 200).json.indices;
    expect(await list()).toMatchObject([
      { name: "old", health: "green", documents: 0, shards: 1 },
      { name: "orders", health: "green", documents: 201, shards: 2 },
    ]);
    expectStatus(await platform.rest.delete(path("/indices/old")), 204);
    expectStatus(await platform.rest.delete(path("/indices/old")), 404);
    expectStatus(await platform.rest.delete(path("/indices/.opendistro_security")), 404);
    expect((await list()).map(({ name }) => name)).toEqual(["orders"]);
    const { entries } = await waitUntil("the deletions are in the audit log, with their outcomes", async () => {
      const query = `object=${logs.service.id}&action=index.delete`;
      const found = await platform.rest.get<PageJson<"entries", AuditLogEntry>>(`/audit-log?${query}`);
      return found.json.entries.length >= 3 && found.json;
    });
    expect(entries.map(({ detail, result, action }) => [detail, result, action])).toEqual([
      [".opendistro_security", "refused", "index.delete index_not_found"],
      ["old", "refused", "index.delete index_not_found"],
      ["old", "ok", "index.delete"],
    ]);
  });

  it("receives metrics and logs of a service of its organization by an export", async () => {
    const exportsPath = "/api/v1/metrics-exports";
    const { host, port, user } = logs.connection;
    const exportTo = (endpoint: string) =>
      platform.rest.post<ExportJson & ProblemJson>(exportsPath, {
        service_id: orders.service.id,
        name: "to-logs",
        destination_type: "search_cluster",
        data_type: "both",
        export_interval_seconds: 30,
        configuration: { endpoint, username: user, password: logs.password },
      });
    const byAddress = await exportTo(`https://${logs.connection.nodes[0]?.addresses[0]}:${port}`);
    expect([byAddress.status, byAddress.json.code]).toEqual([422, "target_not_allowed"]);
    const { id } = expectStatus(await exportTo(`https://${host}:${port}`), 201).json;
    // A test of an integration is refused (429) after ten in a minute.
    const test = async () =>
      (await platform.rest.post<{ success?: boolean; error: string }>(`${exportsPath}/${id}/test`)).json;
    expect(await test()).toEqual({ success: true, error: null });
    const sql = await openPostgresql(platform, orders.connection, { password: orders.password });
    await sql.query("SELECT 1 / 0").catch(() => undefined);
    await sql.end();
    const found = async (kind: string, field: string, phrase: string) => {
      const index = `platform-platform-${kind}`;
      const body = { query: { match_phrase: { [field]: phrase } } };
      const answer = await client.search({ index, ignore_unavailable: true, body });
      return answer.body.hits.hits[0]?._source;
    };
    const log = await waitUntil("the error arrives", () => found("logs", "message", "division by zero"));
    expect(log).toMatchObject({ level: "error", tags: { service_name: "orders", db_type: "postgresql" } });
    await waitUntil("metrics arrive", () => found("metrics", "metric", "platform_memory"));
    const state = expectStatus(await platform.rest.get<ExportJson>(`${exportsPath}/${id}`), 200).json;
    expect(state.consecutive_failures).toBe(0);
    expect(Object.values(state.dropped)).toEqual([0, 0, 0, 0]);

    const admit = (cidrs: readonly string[]) => platform.rest.patch(path(), { allowed_cidrs: cidrs });
    expectStatus(await admit(["198.51.100.7/32"]), 200);
    const { error } = await waitUntil("the allow-list refuses the controller", async () => {
      const result = await test();
      return result.success === false && result;
    });
    expect(error).toContain("do its allowed_cidrs contain the addresses of the controllers?");
    expectStatus(await admit(logs.service.allowed_cidrs), 200);
    await waitUntil("the export is accepted again", async () => (await test()).success === true);
    expectStatus(await platform.rest.delete(`${exportsPath}/${id}`), 204);
  });

  it("refuses what it does not have, with the engine's name", async () => {
    for (const [rest, body] of [
      ["/databases", { name: "other" }],
      ["/nodes", { role: "replica" }],
      ["/fork", { name: "copy" }],
    ] as const) {
      const refused = expectStatus(await platform.rest.post<ProblemJson>(path(rest), body), 422);
      expect(refused.text).toContain("opensearch");
    }
    const two = { name: "two", database_type: "opensearch", plan_name: "tier-1", storage_size_gb: 1, node_count: 2 };
    expectStatus(await platform.rest.post<ProblemJson>("/managed-services", two), 422);
  });

  it("is measured", async () => {
    const names = ["connections", "opensearch_cluster_status", "opensearch_heap_percent"];
    const query = names.map((name) => `metric=${name}`).join("&");
    await waitUntil("samples of all metrics", async () => {
      const answer = await platform.rest.get<MetricsJson>(path(`/metrics?${query}&period=15m`));
      const { series } = expectStatus(answer, 200).json;
      const measured = series.filter(({ points }) => points.length > 0).map(({ metric }) => metric);
      return names.every((name) => measured.includes(name));
    });
  });
});
