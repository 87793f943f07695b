import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasJavaCompiler, writeModelPlugins } from "@holdfast/testing/engines/opensearch-plugins.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { reportSkipped } from "@holdfast/testing/platform/test-reports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Client } from "@opensearch-project/opensearch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSearch, statusOf } from "./opensearch/opensearch-service.ts";

const longMs = 900_000;
const tests = "plugins of operators in OpenSearch";
const unbuilt = await requireRecipes(import.meta.filename, "opensearch");
const canCompile = await hasJavaCompiler();
if (!canCompile) reportSkipped({ tests, reason: "javac is not installed", isFault: false });

describe.skipIf(unbuilt !== undefined || !canCompile)(tests, { timeout: longMs }, () => {
  let directory: string;
  let platform: Platform;
  let services: Services;
  let logs: RunningService;
  let client: Client;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-operator-plugins-"));
    mkdirSync(join(directory, "plugins"));
    await writeModelPlugins(join(directory, "plugins"));
    platform = await startPlatform({ environment: { HOLDFAST_OPENSEARCH_PLUGINS: join(directory, "plugins") } });
    services = createServices(platform);
    // The first service with these plugins has their image built.
    const { id } = await services.create("logs", { database_type: "opensearch" });
    await services.settled(id, "Running", longMs);
    logs = await services.open(id);
    client = openSearch(platform, logs);
  }, longMs);
  afterAll(async () => {
    await client?.close();
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  }, longMs);

  async function ofCatalog() {
    const { json } = await platform.rest.get<{ engines: CatalogEngine[] }>("/catalog");
    const engine = json.engines.find(({ database_type: type }) => type === "opensearch");
    if (engine === undefined) throw new Error("the catalog has no OpenSearch");
    return engine;
  }

  it("makes their features available in the catalog", async () => {
    const { features } = await ofCatalog();
    expect(features.map(({ name, available, reason }) => [name, available, reason])).toEqual([
      ["models", true, null],
      ["sparse_encoding", true, null],
      ["neural_sparse", true, null],
    ]);
  });

  it("runs an ingest processor of a plugin, whose fields are searched", async () => {
    const { body } = await client.cat.plugins({ format: "json" });
    expect(body.map(({ component }) => component).sort()).toEqual([
      "opensearch-ml",
      "opensearch-neural-search",
      "opensearch-security",
    ]);
    const sparse = { sparse_encoding: { model_id: "words", field_map: { text: "weights" } } };
    await client.ingest.putPipeline({ id: "weigh", body: { processors: [sparse] } });
    const mappings = { properties: { weights: { type: "rank_features" as const } } };
    await client.indices.create({
      index: "texts",
      body: { mappings, settings: { index: { default_pipeline: "weigh" } } },
    });
    const texts = ["one fish two fish", "red fish", "no animal"];
    for (const [at, text] of texts.entries())
      await client.index({ index: "texts", id: String(at), refresh: true, body: { text } });
    const query = { rank_feature: { field: "weights.fish", linear: {} } };
    const found = await client.search({ index: "texts", body: { query } });
    expect(found.body.hits.hits.map(({ _id, _score }) => [_id, Number(_score)])).toEqual([
      ["0", 2],
      ["1", 1],
    ]);
  });

  it("permits no settings of the plugins to users", async () => {
    const body = { persistent: { "plugins.ml_commons.only_run_on_ml_node": "true" } };
    expect(await statusOf(client.cluster.putSettings({ body }))).toBe(403);
  });

  it("continues with its image while a plugin cannot be used, which the catalog names", async () => {
    await platform.stop();
    writeFileSync(join(directory, "plugins", "words.zip"), "no zip");
    await platform.start();
    const reason = "the image of opensearch cannot be built: HOLDFAST_OPENSEARCH_PLUGINS: words.zip: it is no zip file";
    const isNamed = async () => (await ofCatalog()).versions.every((version) => version.reason === reason);
    await waitUntil("the catalog has the reason", isNamed, { withinMs: longMs });
    const { versions, features } = await ofCatalog();
    expect([...versions, ...features].map(({ available }) => available)).toEqual([false, false, false, false]);
    const refused = await platform.rest.post("/managed-services", {
      name: "more",
      database_type: "opensearch",
      plan_name: "tier-1",
      storage_size_gb: 1,
    });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("words.zip");
    await services.settled(logs.service.id, "Running", longMs);
    await services.verb(logs.service.id, "restart", longMs);
    expect((await client.count({ index: "texts" })).body.count).toBe(3);
  });

  it("offers the engine again once the file is removed", async () => {
    await platform.stop();
    rmSync(join(directory, "plugins", "words.zip"));
    await platform.start();
    const isAvailable = async () => (await ofCatalog()).features.every(({ available }) => available);
    await waitUntil("the catalog has the features", isAvailable, { withinMs: longMs });
  });
});

interface CatalogEngine {
  readonly database_type: string;
  readonly versions: readonly { readonly available: boolean; readonly reason: string | null }[];
  readonly features: readonly { readonly name: string; readonly available: boolean; readonly reason: string | null }[];
}
