import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNodeClient } from "@holdfast/sdk/node/index.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { metricsText } from "@holdfast/testing/api/metrics-text.ts";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type ScriptedModel, startScriptedModel } from "@holdfast/testing/servers/scripted-model.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface StatisticsJson {
  readonly queries: readonly { readonly query: string; readonly calls: number; readonly rows: number }[];
  readonly total_count: number;
  readonly collected_at: string;
  readonly database_type: string;
  readonly since: string;
}

const secret = "planted-5c1f77aa";

describe("insight into a database", { timeout: 600_000 }, () => {
  let platform: Platform;
  let services: Services;
  let orders: RunningService;
  let cache: RunningService;
  let model: ScriptedModel;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-insight-"));

  beforeAll(async () => {
    model = await startScriptedModel();
    writeFileSync(join(directory, "key"), "planted-model-key\n");
    platform = await startPlatform({
      environment: {
        HOLDFAST_SAMPLE_INTERVAL_MS: "1000",
        HOLDFAST_OPERATOR_EGRESS: "127.0.0.0/8",
        HOLDFAST_MODEL_URL: `${model.url}/v1`,
        HOLDFAST_MODEL_NAME: "scripted",
        HOLDFAST_MODEL_KEY_FILE: join(directory, "key"),
      },
    });
    services = createServices(platform);
    [orders, cache] = await Promise.all([
      services.createRunning("orders"),
      services.createRunning("cache", { database_type: "valkey" }),
    ]);
  });
  afterAll(async () => {
    await platform?.remove();
    await model?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const pathOf = ({ service }: RunningService, rest: string) => `/managed-services/${service.id}/${rest}`;
  const connect = () => openPostgresql(platform, orders.connection, { password: orders.password });

  const textAt = (path: string) => metricsText(platform, path);

  it("is its health, and its history of conditions", async () => {
    const names = ["liveness", "connections", "long_transaction", "transaction_ids"];
    await waitUntil("all checks are healthy", async () => {
      const path = pathOf(orders, "health");
      const health = (await platform.rest.get<{ status: string; checks: { name: string }[] }>(path)).json;
      const checkNames = new Set(health.checks.map(({ name }) => name));
      return health.status === "healthy" && names.every((name) => checkNames.has(name));
    });
    const changes = await waitUntil("the first status has lasted", async () => {
      const path = pathOf(orders, "health/history");
      const { events } = (
        await platform.rest.get<{ events: { event_type: string; data: Record<string, unknown> }[] }>(path)
      ).json;
      return events.length > 0 ? events : undefined;
    });
    expect(changes[0]).toMatchObject({
      event_type: "service.health_changed",
      data: { from: "unknown", to: "healthy" },
    });
  });

  it("is scraped by Prometheus, of one service and of all", async () => {
    const all = await waitUntil("both have reported", async () => {
      const text = await textAt("/metrics");
      return /holdfast_valkey_used_memory\{/.test(text) && /holdfast_pg_connections\{/.test(text) ? text : undefined;
    });
    const samples = parseExposition(all);
    const memory = samples.find(({ name }) => name === "holdfast_valkey_used_memory");
    expect(memory?.labels).toEqual({
      service_id: cache.service.id,
      service_name: "cache",
      db_type: "valkey",
      node_id: cache.service.nodes[0]?.id,
      role: "primary",
    });
    expect(memory?.value).toBeGreaterThan(100_000);
    const exported = parseExposition(await textAt(pathOf(orders, "metrics/export")));
    expect(new Set(exported.map(({ labels }) => labels["service_name"]))).toEqual(new Set(["orders"]));
    expect(exported.find(({ name }) => name === "holdfast_health")?.value).toBe(0);
  });

  it("includes the platform's own metrics for operators alone", async () => {
    const { admin } = platform;
    expect((await platform.rest.get("/metrics/platform")).status).toBe(403);
    const platformMetrics = await metricsText(platform, "/metrics/platform", {
      name: admin.username,
      secret: admin.password,
    });
    const names = new Set(parseExposition(platformMetrics).map(({ name }) => name));
    const metricNames = [
      "rpc_seconds_count",
      "etcd_call_seconds_count",
      "reconcile_seconds_count",
      "reconcile_failing_keys",
      "reconcile_queue_keys",
    ];
    const more = ["agent_sessions", "outbox_waiting", "samples_waiting", "sample_lag_seconds"];
    for (const name of [...metricNames, ...more]) expect(names).toContain(`holdfast_${name}`);
  });

  it("streams live, sample by sample, each once", async () => {
    const path = pathOf(orders, "metrics/samples");
    const query = "metric=cpu&metric=pg_connections";
    type Page = {
      samples: { time: string; node_id: string; values: Record<string, number> }[];
      next_cursor: string;
      has_more: boolean;
    };
    const first = expectStatus(await platform.rest.get<Page>(`${path}?${query}&limit=2`), 200).json;
    expect(first.samples).toHaveLength(2);
    expect(first.samples[0]).toMatchObject({ node_id: orders.service.nodes[0]?.id, role: "primary" });
    const second = (await platform.rest.get<Page>(`${path}?${query}&limit=2&cursor=${first.next_cursor}`)).json;
    expect((second.samples[0]?.time ?? "") > (first.samples[1]?.time ?? "")).toBe(true);
    expect((await platform.rest.get(`${path}?metric=cup`)).status).toBe(400);
    expect((await platform.rest.get(`${path}?metric=valkey_used_memory`)).status).toBe(422);

    const following = new AbortController();
    const sdk = createNodeClient({
      environment: {
        HOLDFAST_BASE_URL: platform.admin.base_url,
        HOLDFAST_TOKEN: platform.admin.token,
        HOLDFAST_CA_FILE: platform.admin.ca_file,
      },
    });
    const times: string[] = [];
    const stream = sdk.metrics.followSamples(
      orders.service.id,
      { metric: ["pg_connections"] },
      { signal: following.signal },
    );
    for await (const { time, values } of stream) {
      times.push(time);
      expect(Object.keys(values)).not.toContain("cpu");
      if (times.length === 8) break;
    }
    following.abort();
    expect(times).toEqual([...new Set(times)].toSorted());
  });

  it("has queries, in the response and as a task, without a literal", async () => {
    const client = await connect();
    await client.query("CREATE TABLE counted AS SELECT n AS id FROM generate_series(1, 50) AS n");
    for (let index = 0; index < 5; index += 1) await client.query(`SELECT id, '${secret}' FROM counted WHERE id > 40`);
    await client.end();
    const now = expectStatus(
      await platform.rest.get<StatisticsJson>(pathOf(orders, "metrics/query-stats?order=calls")),
      200,
    ).json;
    const entry = now.queries.find(({ query }) => query.includes("FROM counted WHERE"));
    expect(entry).toMatchObject({ calls: 5, rows: 50, query: "SELECT id, $1 FROM counted WHERE id > $2" });
    expect(now).toMatchObject({ database_type: "postgresql", total_count: expect.any(Number) });
    expect(JSON.stringify(now)).not.toContain(secret);

    const queryTask = await platform.rest.post<{ task_id: string }>(pathOf(orders, "query-stats"), {
      sort_by: "calls",
      limit: 3,
    });
    const { task_id: id } = expectStatus(queryTask, 202).json;
    const result = await waitUntil("the task is done", async () => {
      const response = await platform.rest.get<StatisticsJson & { status: string }>(
        pathOf(orders, `query-stats?task_id=${id}`),
      );
      return response.status === 200 ? response.json : undefined;
    });
    expect(result).toMatchObject({ status: "completed", database_type: "postgresql" });
    expect(result.queries).toHaveLength(Math.min(result.total_count, 3));
    const task = expectStatus(
      await platform.rest.get<{ type: string; result: StatisticsJson }>(`/tasks/${id}`),
      200,
    ).json;
    expect([task.type, task.result.queries.length]).toEqual(["query_stats", result.queries.length]);
    expect((await platform.rest.get(pathOf(cache, `query-stats?task_id=${id}`))).status).toBe(404);
    expect((await platform.rest.get<ProblemJson>(pathOf(cache, "metrics/query-stats"))).json.code).toBe(
      "not_supported",
    );
  });

  it("lists a running query, and ends it by its session", async () => {
    const client = await connect();
    const holder = await connect();
    await holder.query("SELECT pg_advisory_lock(1)");
    const slow = client.query("SELECT pg_advisory_lock(1) AS waits").catch((error: Error) => error.message);
    const running = await waitUntil("it is among the running", async () => {
      const { json } = await platform.rest.get<{ queries: { query_run_id: string; query: string }[] }>(
        pathOf(orders, "queries/running"),
      );
      return json.queries.find(({ query }) => query === "SELECT pg_advisory_lock(1) AS waits");
    });
    expectStatus(await platform.rest.post(pathOf(orders, `queries/${running.query_run_id}/cancel`), {}), 200);
    expect(await slow).toMatch(/user request/);
    expect((await platform.rest.post(pathOf(orders, "queries/1-1/terminate"), {})).status).toBe(404);
    await Promise.all([client.end(), holder.end()]);
  });

  it("runs a reading statement, and rejects all others with the reason", async () => {
    const execute = (body: object, at = orders) =>
      platform.rest.post<ProblemJson & { rows: unknown[][] }>(pathOf(at, "ai-query/execute"), body);
    const response = expectStatus(await execute({ sql: "SELECT count(*), 'x;y' AS text FROM counted" }), 200).json;
    expect(response).toMatchObject({
      columns: ["count", "text"],
      rows: [["50", "x;y"]],
      row_count: 1,
      truncated: false,
    });
    const large = expectStatus(
      await execute({ sql: "SELECT repeat('x', 1000000) FROM generate_series(1, 50)" }),
      200,
    ).json;
    expect(large).toMatchObject({ row_count: 8, truncated: true });
    expect(large.rows.map(([text]) => String(text).length)).toEqual(Array.from({ length: 8 }, () => 1_000_000));
    const startedAt = async () =>
      expectStatus(await execute({ sql: "SELECT pg_postmaster_start_time()::text" }), 200).json.rows;
    const before = await startedAt();
    const heavy = { sql: "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 1000)" };
    for (const answer of await Promise.all([heavy, heavy, heavy, heavy].map((body) => execute(body))))
      expect(expectStatus(answer, 400).json.detail).toMatch(/^The statement needs more memory than the \d+ MiB/);
    expect(await startedAt()).toEqual(before);
    const refused = expectStatus(await execute({ sql: "DELETE FROM counted" }), 400).json;
    expect(refused).toMatchObject({ code: "sql_refused", errors: [{ field: "sql", code: "sql_refused" }] });
    const engines = expectStatus(await execute({ sql: "SELECT 'é',   nope FROM counted" }), 400).json;
    expect(engines.detail).toBe('column "nope" does not exist (at character 15)');
    expect(expectStatus(await execute({ sql: `SELECT '${secret}' FROM counted` }), 200).json.rows).toHaveLength(50);
    await waitUntil("the runs are in the audit log, without literals", async () => {
      const path = `/audit-log?action=query-console.execute&object=${orders.service.id}`;
      const { entries } = (await platform.rest.get<{ entries: { detail: string }[] }>(path)).json;
      expect(JSON.stringify(entries)).not.toContain(secret);
      return entries.some(({ detail }) => /^SELECT \$1\s+FROM public.counted$/.test(detail));
    });
    expect(expectStatus(await execute({ sql: "SELECT 1" }, cache), 400).json.errors[0]?.code).toBe("not_supported");
    expectStatus(await execute({ sql: "SELECT 1", database_name: "holdfast" }), 400);
    expectStatus(await execute({ sql: `SELECT '${"é".repeat(40_000)}'` }), 400);
  });

  it("answers a question by a model that sees tables and no row, and checks the model's statement", async () => {
    const client = await connect();
    await client.query(`CREATE TABLE parcels (id int PRIMARY KEY, weight numeric, harmless text DEFAULT '${secret}');
      COMMENT ON COLUMN parcels.weight IS 'in grams'; INSERT INTO parcels VALUES (1, 250, '${secret}')`);
    await client.end();
    type Answer = ProblemJson & { sql: string; explanation: string; database_type: string; warning: string | null };
    const translate = (body: object, at = orders) => platform.rest.post<Answer>(pathOf(at, "ai-query/translate"), body);
    const script = (response: object) => model.script(JSON.stringify(response));

    script({ sql: "SELECT sum(weight) FROM parcels;", explanation: "All parcels together.", warning: null });
    expect(expectStatus(await translate({ question: "How heavy are all parcels?" }), 200).json).toEqual({
      sql: "SELECT sum(weight) FROM parcels",
      explanation: "All parcels together.",
      database_type: "postgresql",
      warning: null,
    });
    const request = model.requests.at(-1);
    expect(request?.headers.authorization).toBe("Bearer planted-model-key");
    expect(JSON.parse(request?.body ?? "")).toMatchObject({ model: "scripted", temperature: 0 });
    expect(request?.body).toMatch(
      /PostgreSQL 17[\s\S]*table public\.parcels \(id integer, weight numeric \/\* in grams \*\//,
    );
    expect(request?.body).not.toContain(secret);

    model.script('```json\n{"sql": "SELECT count(*) FROM parcels", "explanation": "x"}\n```');
    expect((await translate({ question: "How many parcels?" })).json.sql).toBe("SELECT count(*) FROM parcels");
    for (const sql of [
      "DELETE FROM parcels",
      "SELECT 1; DROP TABLE parcels",
      "SELECT pg_advisory_lock(9)",
      "SELECT nope FROM parcels",
    ]) {
      script({ sql, explanation: "harm", warning: null });
      const { json } = expectStatus(await translate({ question: "Delete everything" }), 200);
      expect(json, sql).toMatchObject({ sql: "", warning: expect.stringContaining("refused") });
    }
    script({ sql: "", explanation: "", warning: "There are no prices." });
    expect((await translate({ question: "What does it cost?" })).json).toMatchObject({
      sql: "",
      warning: "There are no prices.",
    });
    model.script("I would rather talk about the weather.");
    expect((await translate({ question: "?" })).json).toMatchObject({
      sql: "",
      warning: expect.stringContaining("parsed"),
    });
    model.script("words of the server", 500);
    const failed = await translate({ question: "How many?" });
    expect(failed).toMatchObject({ status: 503, json: { code: "model_unreachable" } });
    expect(failed.text).not.toContain("words of the server");

    const before = model.requests.length;
    for (const question of ["", "   ", "x".repeat(1_001)])
      expect(await translate({ question })).toMatchObject({ status: 400, json: { errors: [{ field: "question" }] } });
    expectStatus(await translate({ question: "How many?" }, cache), 400);
    expect((await platform.rest.post("/managed-services/nobody/ai-query/translate", { question: "x" })).status).toBe(
      404,
    );
    expect(model.requests).toHaveLength(before);
  });

  it("sends no mail where operators have configured no server", async () => {
    const make = (address: string) =>
      platform.rest.post("/alerts/channels", { name: "team", type: "email", config: { address } });
    expect(await make("team")).toMatchObject({ status: 400, json: { errors: [{ field: "config.address" }] } });
    expect(await make("team@example.com")).toMatchObject({ status: 501, json: { code: "not_configured" } });
  });

  it("is available on the command line", async () => {
    const cli = createCommandLine({ HOLDFAST_DATA: platform.directory });
    try {
      expect((await cli.runHere(["health", "orders"])).stdout).toMatch(/^orders is healthy[\s\S]*transaction_ids/);
      expect((await cli.runHere(["health", "orders", "--history"])).stdout).toMatch(/unknown +healthy/);
      expect((await cli.runHere(["queries", "top", "orders", "--order", "calls"])).stdout).toMatch(
        /FROM counted WHERE/,
      );
      expect((await cli.runHere(["queries", "running", "orders"])).code).toBe(0);
      const ran = await cli.runHere(["query", "orders", "--sql", "SELECT max(id) AS most FROM counted;"]);
      expect(ran.stdout).toMatch(/MOST\s+50\s+1 rows in/i);
      model.script('{"sql": "SELECT min(id) AS least FROM counted", "explanation": "The least."}');
      const translated = await cli.runHere(["query", "orders", "--ask", "Which is the least?", "--yes"]);
      expect(translated).toMatchObject({ code: 0, stdout: expect.stringMatching(/LEAST\s+1\s+1 rows in/i) });
    } finally {
      cli.remove();
    }
  });

  it("has a console for running services alone", async () => {
    await services.verb(orders.service.id, "stop");
    for (const [rpc, body] of [
      ["execute", { sql: "SELECT 1" }],
      ["translate", { question: "How many?" }],
    ] as const)
      expect(await platform.rest.post(pathOf(orders, `ai-query/${rpc}`), body)).toMatchObject({
        status: 400,
        json: { errors: [{ code: "wrong_state" }] },
      });
    const health = (await platform.rest.get<{ status: string }>(pathOf(orders, "health"))).json;
    expect(health.status).toBe("unknown");
  });
});
