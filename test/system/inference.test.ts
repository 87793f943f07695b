import { readdirSync, readFileSync, statSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { InferenceService } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import OpenAI from "openai";
import { Agent, fetch as undiciFetch } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { socketQueueBytes } from "@holdfast/testing/network/socket-queues.ts";
import { createCommandLine, type CommandLine } from "@holdfast/testing/platform/command-line.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import {
  codeOf,
  createInferenceCallers,
  type InferenceCallers,
  inParallel,
  plantedPrompt,
} from "@holdfast/testing/platform/inference-callers.ts";
import { createOrganizations, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { argumentsAndEnvironment } from "@holdfast/testing/platform/platform-processes.ts";
import {
  type ScriptedProvider,
  startScriptedProvider,
  streamBytes,
  finishSentAt,
  outputSentAt,
  usageSentAt,
} from "@holdfast/testing/servers/scripted-provider.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { contentOf } from "../conformance/secrets/planted-secrets.ts";

const providerKey = "sk-planted-5f1c9a7e";

describe("the inference proxy", () => {
  let provider: ScriptedProvider;
  let platform: Platform;
  let organizations: Organizations;
  let commandLine: CommandLine;
  let fixture: InferenceCallers;
  const secrets: string[] = [];

  beforeAll(async () => {
    provider = await startScriptedProvider();
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    organizations = createOrganizations(platform);
    commandLine = createCommandLine({ HOLDFAST_DATA: platform.directory });
    fixture = createInferenceCallers(platform, await organizations.first());
  });
  afterAll(async () => {
    await fixture?.close();
    organizations?.close();
    commandLine?.remove();
    await platform?.remove();
    await provider?.close();
  });

  const holdfast = (line: string, input?: string) =>
    commandLine.runHere(line.split(" "), input === undefined ? {} : { input: `${input}\n` });

  it("is set up, called and inspected by the commands of its page", async () => {
    const set = await holdfast(`inference providers set provider_c --base-url ${provider.url}`, providerKey);
    expect(set).toMatchObject({ code: 0, stderr: "" });
    expect(set.stdout).not.toContain(providerKey);
    const trusted = {
      provider: "provider_c",
      api_key: providerKey,
      ca_certificate: provider.authority,
      eu_endpoint: true,
    };
    expect((await fixture.put("providers", trusted)).json).toMatchObject({
      base_url: provider.url,
      has_api_key: true,
      eu_route: true,
      enabled: true,
      capabilities: { chat: true, embeddings: true },
    });
    const early = await fixture.newKey();
    expect(await codeOf(fixture.chat(early.secret, "plain"))).toBe("412 provider_not_configured");
    expect((await fixture.put("settings", { eu_only: false })).json["code"]).toBe("monthly_cost_limit_required");
    expect(await holdfast("inference settings --monthly-limit-cents 5000")).toMatchObject({ code: 0 });
    const created = await holdfast("inference keys create app --rpm 60 --tokens 100000 --output json");
    const { secret } = JSON.parse(created.stdout) as { secret: string };
    secrets.push(secret);
    const response = await fixture.chat(secret, "plain");
    expect(response.choices[0]?.message.content).toBe("Hello there");
    expect(response.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 3 });
    const [call] = provider.calls;
    expect(call?.headers.authorization).toBe(`Bearer ${providerKey}`);
    expect(call?.body["model"]).toBe("plain");
    expect(await holdfast("inference try provider_c/plain", secret)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Hello there"),
    });
    const usage = await waitUntil("usage has both", async () => {
      const { stdout } = await holdfast("inference usage --group-by model");
      return /provider_c\/plain +2 +22 +6/.test(stdout) && stdout;
    });
    expect(usage).toContain("2 requests");
  });

  it("streams with the usage at the end, embeds, and lists", async () => {
    const { secret } = await fixture.newKey();
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    const stream = await fixture.client(secret).chat.completions.create({
      model: "provider_c/plain",
      messages: [{ role: "user", content: "hi" }],
      stream: true,
    });
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("Grüß dich 🙂");
    expect(chunks.filter(({ usage }) => usage).map(({ choices, usage }) => [choices, usage?.total_tokens])).toEqual([
      [[], 14],
    ]);
    const embedded = await fixture.client(secret).embeddings.create({
      model: "provider_c/embed",
      input: ["a", "b"],
      encoding_format: "float",
    });
    expect(embedded.data[0]?.embedding).toEqual([0.25, -0.5]);
    expect((await fixture.client(secret).models.list()).data).toEqual([]);
  });

  it("rejects in the order of its table, for the first reason of several", async () => {
    const otherOrganization = await organizations.create("refused");
    const rest = platform.rest.as((await organizations.createKey(otherOrganization)).authorization);
    const callers = createInferenceCallers(platform, otherOrganization, rest);
    try {
      await callers.put("settings", { monthly_cost_limit_cents: 0, eu_only: true });
      const c = { provider: "provider_c", base_url: provider.url, ca_certificate: provider.authority };
      await callers.put("providers", { ...c, api_key: "k" });
      const rated = (await callers.newKey({ rate_limit_rpm: 1 })).secret;
      const poor = (await callers.newKey({ monthly_token_limit: 10 })).secret;
      const free = (await callers.newKey()).secret;
      const unknown = `${free.slice(0, -4)}AAAA`;
      const chat = (model: string) => JSON.stringify({ model, messages: [{ role: "user", content: "x" }] });
      const large = "{".repeat(11 << 20);
      const steer = JSON.stringify({ ...(JSON.parse(chat("provider_a/m")) as object), base_url: "https://x" });
      const post = (secret: string, body: string, path = "/chat/completions") =>
        callers.send(path, { method: "POST", headers: { authorization: `Bearer ${secret}` }, body });
      const raised = { monthly_cost_limit_cents: 1_000, reset_circuit: true };
      // A call that passes the rate limit counts, with any result.
      expect((await post(rated, "{")).status).toBe(400);

      // biome-ignore format: a table, aligned so that it reads as one
      const rows: readonly (readonly [mend: () => unknown, send: () => ReturnType<typeof post>, status: number, code: string, type: string, param: string | null])[] = [
        [() => 0,                                                 () => post(unknown, large, "/nothing"),                      404, "not_found",                "invalid_request_error", null],
        [() => 0,                                                 () => callers.send("/embeddings"),                           405, "method_not_allowed",       "invalid_request_error", null],
        [() => 0,                                                 () => post(unknown, large),                                  401, "invalid_key",              "authentication_error",  null],
        [() => 0,                                                 () => post(rated, large),                                    429, "rate_limited",             "rate_limit_error",      null],
        [() => 0,                                                 () => post(poor, large),                                     413, "request_too_large",        "invalid_request_error", null],
        [() => 0,                                                 () => post(poor, "{"),                                       400, "invalid_model",            "invalid_request_error", null],
        [() => 0,                                                 () => post(poor, steer),                                     400, "invalid_model",            "invalid_request_error", "base_url"],
        [() => 0,                                                 () => post(poor, chat("large")),                             400, "invalid_model",            "invalid_request_error", "model"],
        [() => 0,                                                 () => post(poor, '{"model":"provider_b/m","input":"a"}', "/embeddings"), 400, "invalid_model", "invalid_request_error", "model"],
        [() => 0,                                                 () => post(poor, chat("provider_a/m")),                      412, "provider_not_configured",  "invalid_request_error", "model"],
        [() => 0,                                                 () => post(poor, chat("nobody/m")),                          412, "provider_not_configured",  "invalid_request_error", "model"],
        [() => 0,                                                 () => post(poor, chat("platform_managed/m")),                412, "provider_not_configured",  "invalid_request_error", "model"],
        [() => callers.put("providers", { ...c, enabled: false }),() => post(poor, chat("provider_c/m")),                      412, "provider_not_configured",  "invalid_request_error", "model"],
        [() => callers.put("providers", { ...c, enabled: true }), () => post(poor, chat("provider_c/m")),                      403, "eu_residency_unavailable", "permission_error",      "model"],
        [() => callers.put("providers", { ...c, eu_endpoint: true }),() => post(poor, chat("provider_c/m")),                   429, "token_ceiling_exceeded",   "rate_limit_error",      null],
        [() => 0,                                                 () => post(free, chat("provider_c/m")),                      402, "cost_circuit_open",        "billing_error",         null],
        [() => callers.put("settings", raised),                   () => post(free, chat("provider_c/unauthorized")),           502, "provider_auth_failed",     "api_error",             null],
        [() => 0,                                                 () => post(free, chat("provider_c/busy")),                   429, "upstream_error",           "api_error",             null],
        [() => 0,                                                 () => post(free, chat("provider_c/broken")),                 502, "upstream_error",           "api_error",             null],
        [() => 0,                                                 () => post(free, chat("provider_c/missing")),                404, "upstream_error",           "api_error",             null],
        [() => 0,                                                 () => post(free, chat("provider_c/moved")),                  502, "upstream_error",           "api_error",             null],
        [() => 0,                                                 () => post(free, chat("provider_c/junk")),                   502, "upstream_error",           "api_error",             null],
      ];
      const before = provider.connections;
      for (const [mend, send, status, code, type, param] of rows) {
        await mend();
        const response = await send();
        const { error } = (await response.json()) as { error: object };
        expect([response.status, error]).toEqual([status, { message: expect.stringMatching(/./), type, param, code }]);
        expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
        const { headers } = response;
        if (code === "rate_limited") {
          expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
          expect(headers.get("x-ratelimit-limit-requests")).toBe("1");
          expect(headers.get("x-ratelimit-remaining-requests")).toBe("0");
        }
        if (code === "token_ceiling_exceeded" || code === "cost_circuit_open")
          expect(headers.get("x-should-retry")).toBe("false");
        // A rejected call opens no connection.
        if (code === "cost_circuit_open") expect(provider.connections).toBe(before);
      }
      const codes = new Set(rows.map(([, , status, code]) => `${status} ${code}`));
      for (const named of [
        "400 invalid_model",
        "401 invalid_key",
        "402 cost_circuit_open",
        "403 eu_residency_unavailable",
        "412 provider_not_configured",
        "429 rate_limited",
        "429 token_ceiling_exceeded",
      ])
        expect(codes).toContain(named);
    } finally {
      secrets.push(...callers.secrets);
      await callers.close();
    }
  });

  it("enforces a changed key immediately", async () => {
    const { id, secret } = await fixture.newKey();
    const path = `${fixture.base}/keys/${id}`;
    const patch = (status: string) => platform.rest.patch(path, { status });
    expect(await codeOf(fixture.chat(secret, "plain"))).toBe("ok");
    expect((await patch("suspended")).json).toMatchObject({ status: "suspended" });
    expect(await codeOf(fixture.chat(secret, "plain"))).toBe("401 invalid_key");
    expect((await patch("active")).status).toBe(200);
    const rotated = await platform.rest.post<{ secret: string }>(`${path}/rotate`);
    secrets.push(rotated.json.secret);
    expect(await codeOf(fixture.chat(secret, "plain"))).toBe("401 invalid_key");
    expect(await codeOf(fixture.chat(rotated.json.secret, "plain"))).toBe("ok");
    expect((await platform.rest.delete(path)).status).toBe(204);
    expect(await codeOf(fixture.chat(rotated.json.secret, "plain"))).toBe("401 invalid_key");
  });

  it("sends nothing out of the EU, reveals none of it, and checks the target of a URL", async () => {
    const { secret } = await fixture.newKey();
    await fixture.put("settings", { eu_only: true });
    await fixture.put("providers", { provider: "provider_c", eu_endpoint: false });
    const provided = { provider: "provider_a", api_key: "k", base_url: provider.url, eu_endpoint: true };
    expect((await fixture.put("providers", provided)).json["eu_route"]).toBe(false);
    const log = join(platform.directory, "log", "inference.log");
    const before = [provider.connections, provider.calls.length, statSync(log).size];
    expect(await codeOf(fixture.chat(secret, "plain"))).toBe("403 eu_residency_unavailable");
    expect(await codeOf(fixture.chat(secret, "plain", { model: "provider_a/plain" }))).toBe(
      "403 eu_residency_unavailable",
    );
    expect([provider.connections, provider.calls.length, statSync(log).size]).toEqual(before);
    await fixture.put("providers", { provider: "provider_c", eu_endpoint: true });
    expect(await codeOf(fixture.chat(secret, "plain"))).toBe("ok");
    await fixture.put("settings", { eu_only: false });
    const statusOf = async (base_url: string) => {
      const { status, json } = await fixture.put("providers", { provider: "provider_e", api_key: "k", base_url });
      return [status, json["code"]];
    };
    expect(await statusOf("http://models.example.com")).toEqual([400, "invalid_request"]);
    expect(await statusOf("/v1")).toEqual([400, "invalid_request"]);
    expect(await statusOf("https://10.0.0.1/v1")).toEqual([422, "base_url_not_allowed"]);
    expect(await statusOf(platform.admin.base_url)).toEqual([422, "base_url_not_allowed"]);
    const created = readFileSync(join(platform.directory, "installation.json"), "utf8");
    const { ports } = JSON.parse(created) as { ports: Record<string, number> };
    expect(Object.keys(ports).length).toBeGreaterThan(8);
    for (const [name, port] of Object.entries(ports))
      expect([name, await statusOf(`https://127.0.0.1:${port}/v1`)]).toEqual([name, [422, "base_url_not_allowed"]]);
    expect((await fixture.put("providers", { provider: "provider_d", api_key: "k" })).json["code"]).toBe(
      "invalid_request",
    );
    expect((await fixture.put("providers", { provider: "nobody", api_key: "k" })).status).toBe(400);
    expect((await platform.rest.delete(`${fixture.base}/providers/provider_a`)).status).toBe(204);
  });

  it("sends no stored key to another destination: changing it requires the key again", async () => {
    const { secret } = await fixture.newKey();
    const rogue = await startScriptedProvider();
    try {
      const elsewhere = [
        { base_url: rogue.url },
        { base_url: `${provider.url}/other` },
        { ca_certificate: rogue.authority },
        { base_url: rogue.url, ca_certificate: rogue.authority },
      ];
      for (const change of elsewhere) {
        const { status, json } = await fixture.put("providers", { provider: "provider_c", ...change });
        expect([status, json["code"]], JSON.stringify(Object.keys(change))).toEqual([400, "invalid_request"]);
        expect(json["errors"]).toMatchObject([{ field: "api_key", code: "secret_required" }]);
      }
      expect(await codeOf(fixture.chat(secret, "plain"))).toBe("ok");
      expect((await fixture.put("providers", { provider: "provider_c", enabled: true })).status).toBe(200);
      expect(await codeOf(fixture.chat(secret, "plain"))).toBe("ok");
      expect([rogue.connections, rogue.calls.length]).toEqual([0, 0]);
    } finally {
      await rogue.close();
    }
  });

  it("reports the provider's usage, to the token, however calls end", async () => {
    const { secret } = await fixture.newKey();
    const streamed = async (model: string) => {
      const response = await fixture.send("/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${secret}` },
        body: JSON.stringify({
          model: `provider_c/${model}`,
          stream: true,
          messages: [{ role: "user", content: "x" }],
        }),
      });
      const text = await response.text();
      return {
        isComplete: text.endsWith("data: [DONE]\n\n"),
        isReported: text.includes('data: {"error"') || response.status >= 400,
      };
    };
    const cuts = Array.from({ length: streamBytes.length + 1 }, (_, at) => at);
    await inParallel(cuts, 32, async (at) => {
      const { isComplete, isReported } = await streamed(`cut-${at}`);
      // A stream that is cut before its choice has ended is an error for the client.
      const ended = at >= finishSentAt;
      expect([at, isComplete, isReported]).toEqual([at, ended, !ended]);
    });
    for (const model of ["bytewise", "twice", "inline", "none", "junk", "failing", "endless"]) await streamed(model);
    for (const model of ["zero", "none", "negative", "fraction", "huge", "plain"]) await fixture.chat(secret, model);
    const exactModels = ["bytewise", "twice", "inline", "zero", "plain"];
    const usage = await waitUntil(
      "all of it is in usage",
      async () => {
        const found = await fixture.usage("model");
        const requests = new Map(found.items.map((item) => [item.model, item.requests]));
        const charged = cuts.filter((at) => at >= outputSentAt);
        return (
          charged.every((at) => requests.has(`provider_c/cut-${at}`)) &&
          requests.has("provider_c/huge") &&
          exactModels.every((model) => requests.get(`provider_c/${model}`) === provider.ledger.get(model)?.requests) &&
          found
        );
      },
      { withinMs: 10_000 },
    );
    const exact = new Map(
      usage.items.filter(({ estimated_requests: estimated }) => estimated === 0).map((item) => [item.model, item]),
    );
    for (const at of cuts) expect([at, exact.has(`provider_c/cut-${at}`)]).toEqual([at, at >= usageSentAt]);
    const inUsage = new Set(usage.items.map(({ model }) => model));
    // A call without any output costs nothing.
    for (const at of cuts) expect([at, inUsage.has(`provider_c/cut-${at}`)]).toEqual([at, at >= outputSentAt]);
    for (const [model, item] of exact) {
      const charged = provider.ledger.get(model?.slice("provider_c/".length) ?? "");
      expect([model, item.prompt_tokens, item.completion_tokens]).toEqual([
        model,
        charged?.promptTokens,
        charged?.completionTokens,
      ]);
    }
    for (const model of exactModels) expect(exact.has(`provider_c/${model}`)).toBe(true);
    const sum = usage.items.reduce((all, { cost_cents: cost }) => all + cost, 0);
    expect(usage.total.cost_cents).toBeCloseTo(sum, 6);
  }, 60_000);

  it("buffers little for a client that does not read, and stops reading from the provider", async () => {
    const { secret } = await fixture.newKey();
    const body = JSON.stringify({
      model: "provider_c/flood",
      stream: true,
      messages: [{ role: "user", content: "x" }],
    });
    const reader = request(`${platform.admin.inference_url}/chat/completions`, {
      method: "POST",
      ca: platform.ca,
      headers: { authorization: `Bearer ${secret}`, "content-length": Buffer.byteLength(body) },
    });
    reader.on("error", () => undefined);
    reader.end(body);
    const response = await new Promise<NodeJS.ReadableStream>((resolve) => reader.once("response", resolve));
    response.on("error", () => undefined);
    let last = -1;
    const isStopped = () => {
      const isStill = provider.flooded > 0 && provider.flooded === last;
      last = provider.flooded;
      return isStill && last;
    };
    const stood = await waitUntil("the provider has stopped", isStopped, { everyMs: 250 });
    // The kernel bounds the queues of both connections; a complete response may have 64 MiB.
    expect(stood).toBeLessThan(40 << 20);
    const queued = socketQueueBytes(
      [provider.url, platform.admin.inference_url].map((url) => Number(new URL(url).port)),
    );
    expect(queued).toBeGreaterThan(0);
    expect(stood - queued).toBeLessThan(2 << 20);
    response.resume();
    await waitUntil("it continues for a client that reads", () => provider.flooded > stood);
    reader.destroy();
  }, 30_000);

  it("is reached by its name, which is in the zone and in its certificate", async () => {
    const name = "inference.local.holdfast.test";
    await waitUntil("the zone has it", async () =>
      (await resolveName(platform.admin.dns_server, name)).includes("127.0.0.1"),
    );
    const dispatcher = new Agent({ connect: { ca: platform.ca, servername: name } });
    const healthz = platform.admin.inference_url.replace("/v1", "/healthz");
    expect((await undiciFetch(healthz, { dispatcher })).status).toBe(200);
    await dispatcher.destroy();
  });

  it("serves gRPC too, with the author of each change", async () => {
    const orgId = fixture.base.split("/")[2] ?? "";
    const listed = await withGrpc(
      { url: platform.admin.grpc_url, ca: platform.ca, authorization: platform.owner },
      InferenceService,
      (rpcs) => rpcs.listInferenceProviders({ orgId }),
    );
    expect(listed.providers.map(({ provider: name }) => name)).toContain("provider_c");
    const audit = (await holdfast("admin audit --limit 500 --output json")).stdout;
    for (const action of ["inference-key.create", "inference-key.rotate", "inference-key.delete"])
      expect(audit).toContain(action);
  });

  it("has metrics and health on a separate socket", async () => {
    const dispatcher = new Agent({
      connect: { socketPath: join(platform.directory, "run", "inference-metrics.sock") },
    });
    const text = await (await undiciFetch("http://inference/metrics", { dispatcher })).text();
    await dispatcher.destroy();
    expect(text).toContain('holdfast_inference_requests_total{status="200",code="ok",provider="provider_c"}');
    expect(text).toContain("holdfast_inference_controller_connected 1");
  });

  it("stores keys and prompts where no one can read them", async () => {
    const stored = [...(await dumpEtcd(platform.directory))].flat().join("\n");
    // Logs, the journal, and the raw files of etcd and of the history.
    const files = filesBelow(platform.directory, ["keys", "machines"]);
    expect(files.some((file) => file.endsWith("inference/journal"))).toBe(true);
    const running = Object.values(platform.processes())
      .flat()
      .filter((pid) => typeof pid === "number");
    const searched = [...platform.errorBodies, ...running.map((pid) => JSON.stringify(argumentsAndEnvironment(pid)))];
    const texts = [stored, searched.join("\n"), ...files.map((file) => contentOf(file).toString("latin1"))];
    for (const secret of [providerKey, plantedPrompt, ...secrets, ...fixture.secrets])
      expect(texts.findIndex((text) => text.includes(secret))).toBe(-1);
  });
});

function filesBelow(directory: string, without: readonly string[]): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => !without.includes(name.split("/")[0] ?? ""))
    .map((name) => join(directory, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}
