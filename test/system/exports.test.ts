import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNodeClient } from "@holdfast/sdk/node/index.ts";
import { contentOf } from "../conformance/secrets/planted-secrets.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { logFiles } from "@holdfast/testing/platform/platform-logs.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { exportReaders, type ReadItem } from "@holdfast/testing/servers/export-readers.ts";
import { type ExportReceiver, startExportReceiver } from "@holdfast/testing/servers/export-receiver.ts";
import { type Prometheus, startPrometheus } from "@holdfast/testing/servers/prometheus.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface ExportJson {
  readonly id: string;
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly consecutive_failures: number;
  readonly last_export_error: string | null;
  readonly backlog_seconds: number;
  readonly exported: { readonly samples: number; readonly log_entries: number };
  readonly dropped: Readonly<Record<string, number>>;
}

const path = "/api/v1/metrics-exports";
const secret = exportReaders.prometheus_remote_write.secret;

describe("exports", () => {
  let platform: Platform;
  let services: Services;
  let cli: CommandLine;
  let prometheus: Prometheus | string;
  let serviceId: string;
  let directory: string;
  const receivers: ExportReceiver[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "exports-"));
    const starting = startPrometheus();
    starting.catch(() => undefined);
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    services = createServices(platform);
    cli = createCommandLine({ HOLDFAST_DATA: platform.directory });
    serviceId = (await services.createRunning("first")).service.id;
    prometheus = await starting;
  });
  afterAll(async () => {
    await Promise.all(receivers.map((receiver) => receiver.close()));
    if (typeof prometheus === "object") await prometheus.remove();
    cli?.remove();
    await platform?.remove();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  });

  const get = async (id: string) => expectStatus(await platform.rest.get<ExportJson>(`${path}/${id}`), 200).json;

  async function receiver(...of: Parameters<typeof startExportReceiver>): Promise<ExportReceiver> {
    const created = await startExportReceiver(...of);
    receivers.push(created);
    return created;
  }

  it("deliver series to a real Prometheus, and log entries to OTLP", async (context) => {
    if (typeof prometheus === "string") return context.skip(prometheus);
    const real = prometheus;
    const created = await cli.runHere(
      [
        `exports create --to prometheus_remote_write --set url=${real.url}/api/v1/write`,
        "--service first --interval 30 --output json",
      ].flatMap((words) => words.split(" ")),
    );
    expect(created).toMatchObject({ code: 0 });
    const { id } = JSON.parse(created.stdout) as ExportJson;
    const reader = exportReaders.otlp;
    const received: ReadItem[] = [];
    const accepting = await receiver((arrival) => {
      received.push(...(reader.read(arrival) ?? []));
      return reader.acceptance(arrival);
    });
    const both = await platform.rest.post<ExportJson>(path, {
      service_id: serviceId,
      name: "otlp",
      destination_type: "otlp",
      data_type: "both",
      export_interval_seconds: 30,
      configuration: reader.configuration(accepting.url),
    });
    expectStatus(both, 201);
    const { connection, password } = await services.open(serviceId);
    const sql = await openPostgresql(platform, connection, { password });
    await sql.query("SELECT 1 / 0").catch(() => undefined);
    await sql.end();

    // A gauge: the first sample of a machine has no rates, and the next one may come with the tick of the next
    // interval.
    const { labels } = await waitUntil("the series exists", () =>
      real.newest(`platform_memory{service_id="${serviceId}"}`),
    );
    expect(labels).toMatchObject({ __name__: "platform_memory", db_type: "postgresql", service_name: "first" });
    expect(labels["node_id"]).toMatch(/^[0-9a-f-]{36}$/);
    const entry = await waitUntil("the error is recorded", () =>
      received.find(({ name, value }) => name === "log" && String(value).includes("division by zero")),
    );
    expect(entry).toMatchObject({ serviceId });
    expect(Math.abs(entry.timeMs - Date.now())).toBeLessThan(120_000);
    await waitUntil("so are samples", () => received.some(({ name }) => name === "memory"));
    const [series, logs] = await waitUntil("the figures are there", async () => {
      const now = await Promise.all([get(id), get(both.json.id)]);
      return now.every(({ exported, backlog_seconds: behind }) => exported.samples > 0 && behind === 0) && now;
    });
    expect(series).toMatchObject({ consecutive_failures: 0, last_export_error: null });
    // oxlint-disable-next-line holdfast/names -- members of the API
    expect(series?.dropped).toEqual({ too_old: 0, refused: 0, gone: 0, gone_log_segments: 0 });
    expect(logs?.exported.log_entries).toBeGreaterThan(0);
    const tested = await cli.runHere(["exports", "test", id, "--output", "json"]);
    expect(JSON.parse(tested.stdout)).toEqual({ success: true, error: null });
  });

  it("are validated, and each fault is named", async () => {
    const body = { service_id: serviceId, name: "n", destination_type: "otlp", data_type: "metrics" };
    const rejected = await platform.rest.post<{ detail: string; errors: { field: string }[] }>(path, {
      ...body,
      export_interval_seconds: 29,
      configuration: { endpoint: "https://1.1.1.1/v1/metrics", color: "red", timeout_seconds: 0 },
    });
    expect(rejected.status).toBe(400);
    expect(rejected.json.errors.map(({ field }) => field)).toEqual([
      "export_interval_seconds",
      "configuration.color",
      "configuration.timeout_seconds",
      "configuration.endpoint",
    ]);
    const early = await platform.rest.post(path, {
      ...body,
      export_interval_seconds: 29,
      configuration: { endpoint: "https://1.1.1.1" },
    });
    expect(early.json["detail"]).toBe("export_interval_seconds must be at least 30");
    const nothing = await platform.rest.post(path, {
      ...body,
      destination_type: "log_aggregator",
      configuration: { endpoint: "https://1.1.1.1" },
    });
    expect([nothing.status, nothing.json["code"]]).toEqual([422, "data_type_not_supported"]);
    const inside = await platform.rest.post(path, { ...body, configuration: { endpoint: "https://169.254.169.254" } });
    expect([inside.status, inside.json["code"]]).toEqual([422, "target_not_allowed"]);
    const duplicate = await platform.rest.post(path, {
      ...body,
      destination_type: "prometheus_remote_write",
      configuration: { url: "https://1.1.1.1/api/v1/write" },
    });
    expect([duplicate.status, duplicate.json["code"]]).toEqual([409, "destination_exists"]);
    const saas = await platform.rest.post(path, {
      ...body,
      destination_type: "log_saas",
      data_type: "logs",
      configuration: { source_token: "t" },
    });
    expect(saas.status).toBe(422);
  });

  it("never reveal secrets, and send them only to the host that they were given for", async () => {
    const client = createNodeClient({ dataDirectory: platform.directory });
    const tokenFile = join(directory, "token");
    writeFileSync(tokenFile, `${secret}\n`);
    const refusing = await receiver(() => ({ status: 403, body: secret }));
    const created = await cli.runHere(
      [
        `exports create --to log_aggregator --service first --set endpoint=${refusing.url}`,
        `--from-file bearer_token=${tokenFile} --interval 30 --output json`,
      ].flatMap((words) => words.split(" ")),
    );
    expect(created).toMatchObject({ code: 0 });
    const { id, configuration } = JSON.parse(created.stdout) as ExportJson;
    expect(configuration).toMatchObject({ bearer_token: "********" });
    const updated = await client.exports.update(id, { name: "logs", configuration: { bearer_token: "********" } });
    expect(updated).toMatchObject({
      name: "logs",
      configuration: { endpoint: refusing.url, bearer_token: "********" },
    });
    const redirected = await platform.rest.call("PUT", `${path}/${id}`, {
      body: { configuration: { endpoint: "https://1.1.1.1/" } },
    });
    expect(redirected).toMatchObject({ status: 400, json: { errors: [{ code: "secret_required" }] } });
    const tested = await client.exports.test(id);
    expect(tested).toEqual({ success: false, error: "HTTP 403: the destination refuses the credential" });
    expect([...(await dumpEtcd(platform.directory))].join()).not.toContain(secret);
    for (const file of logFiles(platform.directory)) expect(contentOf(file)).not.toContain(secret);
    await client.exports.disable(id);
    const page = await client.exports.page({ service_id: serviceId, is_enabled: false });
    expect(page).toMatchObject({ total: 1, limit: 50, offset: 0, integrations: [{ id, is_enabled: false }] });
    await client.exports.delete(id);
    expect((await platform.rest.get(`${path}/${id}`)).status).toBe(404);
  });
});
