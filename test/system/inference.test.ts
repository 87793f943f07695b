import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { Agent, fetch as undiciFetch } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCommandLine, type CommandLine } from "../support/platform/command-line.ts";
import { dumpEtcd } from "../support/platform/etcd-dump.ts";
import { type InferenceProcess, startInferenceProcess } from "../support/platform/inference-process.ts";
import { createOrganizations, type Organizations } from "../support/platform/organizations.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { killAtOnce } from "../support/platform/platform-processes.ts";
import {
  type ScriptedProvider,
  startScriptedProvider,
  streamBytes,
  usageToldAt,
} from "../support/servers/scripted-provider.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Usage {
  readonly items: readonly UsageItem[];
  readonly total: UsageItem;
}

interface UsageItem {
  readonly model: string | null;
  readonly key_id: string | null;
  readonly requests: number;
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly cost_cents: number;
  readonly estimated_requests: number;
}

const providerKey = "sk-planted-5f1c9a7e";
const plantedPrompt = "planted-prompt-8d2e";

describe("the inference proxy", () => {
  let provider: ScriptedProvider;
  let platform: Platform;
  let organizations: Organizations;
  let commandLine: CommandLine;
  let organization: string;
  let base: string;
  let agent: Agent;
  const secrets: string[] = [];
  const others: InferenceProcess[] = [];

  beforeAll(async () => {
    provider = await startScriptedProvider();
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    organizations = createOrganizations(platform);
    commandLine = createCommandLine({ HOLDFAST_DATA: platform.directory });
    organization = await organizations.first();
    base = `/organizations/${organization}/inference`;
    agent = new Agent({ connect: { ca: platform.ca }, connections: 256, allowH2: false });
  });
  afterAll(async () => {
    provider?.release();
    await Promise.all(others.map((other) => other.remove()));
    await agent?.destroy();
    organizations?.close();
    commandLine?.remove();
    await platform?.remove();
    await provider?.close();
  });

  const clientOf = (apiKey: string, baseURL = platform.admin.inference_url) =>
    new OpenAI({
      apiKey,
      baseURL,
      maxRetries: 0,
      fetch: ((url: string, init: object) => undiciFetch(url, { ...init, dispatcher: agent })) as never,
    });

  async function newKey(limits: object = {}): Promise<{ id: string; secret: string }> {
    const { status, json } = await platform.rest.post<{ id: string; secret: string }>(`${base}/keys`, {
      name: "app",
      ...limits,
    });
    expect(status).toBe(201);
    secrets.push(json.secret);
    return json;
  }

  async function usageBy(group: "model" | "key"): Promise<Usage> {
    return (await platform.rest.get<Usage>(`${base}/usage?group_by=${group}`)).json;
  }

  const chat = (secret: string, model: string, more: object = {}, baseURL?: string) =>
    clientOf(secret, baseURL).chat.completions.create({
      model: `provider_c/${model}`,
      messages: [{ role: "user", content: plantedPrompt }],
      max_tokens: 50,
      ...more,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming);

  async function codeOf(call: Promise<unknown>): Promise<string> {
    try {
      await call;
      return "ok";
    } catch (error) {
      if (error instanceof OpenAI.APIError && error.code) return `${error.status} ${error.code}`;
      throw error;
    }
  }

  it("is set up by the command, and the first call of a new key works", async () => {
    const set = await commandLine.runHere(
      ["inference", "providers", "set", "provider_c", "--url", provider.url, "--output", "json"],
      { input: `${providerKey}\n` },
    );
    expect(set).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(set.stdout)).toMatchObject({ has_api_key: true, eu_route: false, enabled: true });
    expect(set.stdout).not.toContain(providerKey);
    const put = await platform.rest.call("PUT", `${base}/providers`, {
      body: {
        provider: "provider_c",
        ca_certificate: provider.authority,
        eu_endpoint: true,
      },
    });
    expect([put.status, put.json["eu_route"]]).toEqual([200, true]);
    const early = await newKey();
    expect(await codeOf(chat(early.secret, "plain"))).toBe("412 provider_not_configured");
    expect((await platform.rest.call("PUT", `${base}/settings`, { body: { eu_only: false } })).json["code"]).toBe(
      "monthly_cost_limit_required",
    );
    const limited = await commandLine.runHere(["inference", "settings", "--monthly-limit-cents", "5000"]);
    expect(limited).toMatchObject({ code: 0 });
    const made = await commandLine.runHere([
      "inference",
      "keys",
      "create",
      "app",
      "--rpm",
      "6000",
      "--tokens",
      "100000",
      "--output",
      "json",
    ]);
    const { secret } = JSON.parse(made.stdout) as { secret: string };
    secrets.push(secret);
    const answer = await chat(secret, "plain");
    expect(answer.choices[0]?.message.content).toBe("Hello there");
    expect(answer.usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 3 });
    const [call] = provider.calls;
    expect(call?.headers.authorization).toBe(`Bearer ${providerKey}`);
    expect(call?.body["model"]).toBe("plain");
    const tried = await commandLine.runHere(["inference", "try", "provider_c/plain"], { input: `${secret}\n` });
    expect(tried).toMatchObject({ code: 0, stdout: expect.stringContaining("Hello there") });
  });

  it("streams with the usage at the end, embeds, and lists", async () => {
    const { secret } = await newKey();
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    const stream = await clientOf(secret).chat.completions.create({
      model: "provider_c/plain",
      messages: [{ role: "user", content: "hi" }],
      stream: true,
    });
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe("Grüß dich 🙂");
    expect(chunks.filter(({ usage }) => usage).map(({ choices, usage }) => [choices, usage?.total_tokens])).toEqual([
      [[], 14],
    ]);
    const embedded = await clientOf(secret).embeddings.create({
      model: "provider_c/embed",
      input: ["a", "b"],
      encoding_format: "float",
    });
    expect(embedded.data[0]?.embedding).toEqual([0.25, -0.5]);
    expect((await clientOf(secret).models.list()).data).toEqual([]);
  });

  it("refuses in the order of its table, with codes that clients know", async () => {
    const { secret, id } = await newKey();
    const tight = await newKey({ rate_limit_rpm: 1 });
    const send = (path: string, init: object = {}, key = secret) =>
      undiciFetch(`${platform.admin.inference_url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        dispatcher: agent,
        ...init,
      });
    const codeFrom = async (answer: Awaited<ReturnType<typeof send>>) => {
      const { error } = (await answer.json()) as { error: { code: string; param: string | null } };
      return [answer.status, error.code, error.param];
    };
    const body = (more: object) =>
      JSON.stringify({ model: "provider_c/plain", messages: [{ role: "user", content: "x" }], ...more });
    expect(await codeFrom(await send("/nothing"))).toEqual([404, "not_found", null]);
    expect(await codeFrom(await send("/embeddings", { method: "GET" }))).toEqual([405, "method_not_allowed", null]);
    const stranger = `${secret.slice(0, -4)}AAAA`;
    expect(await codeFrom(await send("/chat/completions", { body: "{" }, stranger))).toEqual([
      401,
      "invalid_key",
      null,
    ]);
    // What passes the rate counts, whatever becomes of it.
    expect(await codeFrom(await send("/chat/completions", { body: "{" }, tight.secret))).toEqual([
      400,
      "invalid_model",
      null,
    ]);
    const limited = await send("/chat/completions", { body: "{" }, tight.secret);
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(limited.headers.get("x-ratelimit-limit-requests")).toBe("1");
    expect(await codeFrom(limited)).toEqual([429, "rate_limited", null]);
    const large = await send("/chat/completions", { body: body({ pad: "x".repeat(11 << 20) }) });
    expect(await codeFrom(large)).toEqual([413, "request_too_large", null]);
    expect(await codeFrom(await send("/chat/completions", { body: body({ base_url: "https://x" }) }))).toEqual([
      400,
      "invalid_model",
      "base_url",
    ]);
    expect(await codeFrom(await send("/embeddings", { body: '{"model":"provider_b/x","input":"a"}' }))).toEqual([
      400,
      "invalid_model",
      "model",
    ]);
    for (const model of ["provider_a/x", "nobody/x", "platform_managed/x"])
      expect(await codeFrom(await send("/chat/completions", { body: body({ model }) }))).toEqual([
        412,
        "provider_not_configured",
        "model",
      ]);
    for (const [model, status, code] of [
      ["unauthorized", 502, "provider_auth_failed"],
      ["busy", 429, "upstream_error"],
      ["broken", 502, "upstream_error"],
      ["missing", 404, "upstream_error"],
      ["moved", 502, "upstream_error"],
      ["junk", 502, "upstream_error"],
    ] as const)
      expect([model, await codeOf(chat(secret, model))]).toEqual([model, `${status} ${code}`]);
    const poor = await newKey({ monthly_token_limit: 20 });
    expect(await codeOf(chat(poor.secret, "plain"))).toBe("429 token_ceiling_exceeded");
    const suspended = await platform.rest.call("PATCH", `${base}/keys/${id}`, { body: { status: "suspended" } });
    expect([suspended.status, await codeOf(chat(secret, "plain"))]).toEqual([200, "401 invalid_key"]);
  });

  it("serves a changed key at once", async () => {
    const { id, secret } = await newKey();
    expect(await codeOf(chat(secret, "plain"))).toBe("ok");
    const rotated = await platform.rest.post<{ secret: string }>(`${base}/keys/${id}/rotate`);
    secrets.push(rotated.json.secret);
    expect(await codeOf(chat(secret, "plain"))).toBe("401 invalid_key");
    expect(await codeOf(chat(rotated.json.secret, "plain"))).toBe("ok");
    expect((await platform.rest.call("DELETE", `${base}/keys/${id}`)).status).toBe(204);
    expect(await codeOf(chat(rotated.json.secret, "plain"))).toBe("401 invalid_key");
  });

  it("sends nothing out of the EU, and judges where a URL leads", async () => {
    const { secret } = await newKey();
    const put = (path: string, body: object) => platform.rest.call("PUT", `${base}/${path}`, { body });
    await put("settings", { eu_only: true });
    await put("providers", { provider: "provider_c", eu_endpoint: false });
    await put("providers", { provider: "provider_a", api_key: "k", base_url: provider.url, eu_endpoint: true });
    const before = provider.calls.length;
    expect(await codeOf(chat(secret, "plain"))).toBe("403 eu_residency_unavailable");
    expect(await codeOf(chat(secret, "plain", { model: "provider_a/plain" }))).toBe("403 eu_residency_unavailable");
    expect(provider.calls.length).toBe(before);
    await put("providers", { provider: "provider_c", eu_endpoint: true });
    expect(await codeOf(chat(secret, "plain"))).toBe("ok");
    await put("settings", { eu_only: false });
    const bad = async (base_url: string) => {
      const { status, json } = await put("providers", { provider: "provider_e", api_key: "k", base_url });
      return [status, json["code"]];
    };
    expect(await bad("http://models.example.com")).toEqual([400, "invalid_request"]);
    expect(await bad("https://10.0.0.1/v1")).toEqual([422, "base_url_not_allowed"]);
    expect(await bad(platform.admin.base_url)).toEqual([422, "base_url_not_allowed"]);
    expect((await put("providers", { provider: "provider_d", api_key: "k" })).json["code"]).toBe("invalid_request");
    expect((await put("providers", { provider: "nobody", api_key: "k" })).status).toBe(400);
    expect((await platform.rest.call("DELETE", `${base}/providers/provider_a`)).status).toBe(204);
  });

  it("tells the usage that the provider charges, to the token, however calls end", async () => {
    const { secret } = await newKey();
    const streamed = async (model: string) => {
      const answer = await undiciFetch(`${platform.admin.inference_url}/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}` },
        body: JSON.stringify({
          model: `provider_c/${model}`,
          stream: true,
          messages: [{ role: "user", content: "x" }],
        }),
        dispatcher: agent,
      });
      const text = await answer.text();
      return {
        text,
        isWhole: text.endsWith("data: [DONE]\n\n"),
        isTold: text.includes('data: {"error"') || answer.status >= 400,
      };
    };
    const cuts = Array.from({ length: streamBytes.length + 1 }, (_, at) => at);
    await inParallel(cuts, 32, async (at) => {
      const { isWhole, isTold } = await streamed(`cut-${at}`);
      // Only the very end is whole; before it the client is told.
      const ended = at === streamBytes.length;
      expect([at, isWhole, isTold]).toEqual([at, ended, !ended]);
    });
    for (const model of ["bytewise", "twice", "inline", "none", "junk", "failing", "endless"]) await streamed(model);
    for (const model of ["zero", "none", "negative", "fraction", "huge", "plain"]) await chat(secret, model);
    const usage = await waitUntil(
      "all of it is in usage",
      async () => {
        const found = await usageBy("model");
        const models = new Set(found.items.map(({ model }) => model));
        return cuts.every((at) => models.has(`provider_c/cut-${at}`)) && models.has("provider_c/huge") && found;
      },
      { withinMs: 10_000 },
    );
    const exact = new Map(
      usage.items.filter(({ estimated_requests: estimated }) => estimated === 0).map((item) => [item.model, item]),
    );
    for (const at of cuts) expect(exact.has(`provider_c/cut-${at}`)).toBe(at >= usageToldAt);
    for (const [model, its] of exact) {
      const charged = provider.ledger.get(model?.slice("provider_c/".length) ?? "");
      expect([model, its.prompt_tokens, its.completion_tokens]).toEqual([
        model,
        charged?.promptTokens,
        charged?.completionTokens,
      ]);
    }
    for (const model of ["bytewise", "twice", "inline", "zero", "plain"])
      expect(exact.has(`provider_c/${model}`)).toBe(true);
    const sum = usage.items.reduce((all, { cost_cents: cost }) => all + cost, 0);
    expect(usage.total.cost_cents).toBeCloseTo(sum, 6);
  }, 60_000);

  it("lets exactly as much pass as fits, on one process and on three", async () => {
    others.push(await startInferenceProcess(platform), await startInferenceProcess(platform));
    const own = platform.admin.inference_url;
    for (const urls of [[own], [own, ...others.map(({ url }) => url)]]) {
      const rated = await newKey({ rate_limit_rpm: 130 });
      expect(await passing(urls, 2_000, 90, () => rated.secret)).toEqual({ ok: 130, rate_limited: 1_870 });
      // Each uses what it reserves, 66 tokens.
      const poor = await newKey({ monthly_token_limit: 66 * 97 + 65 });
      expect(await passing(urls, 2_000, 90, () => poor.secret)).toEqual({ ok: 97, token_ceiling_exceeded: 1_903 });
    }
  }, 90_000);

  it("opens the circuit when the month is used up, and closes it by a raised limit with a reset", async () => {
    const other = await organizations.create("spenders");
    const rest = platform.rest.as((await organizations.createKey(other)).authorization);
    const path = `/organizations/${other}/inference`;
    const put = (what: string, body: object) => rest.call("PUT", `${path}/${what}`, { body });
    await put("providers", {
      provider: "provider_c",
      api_key: "k",
      base_url: provider.url,
      ca_certificate: provider.authority,
    });
    await put("settings", { monthly_cost_limit_cents: 100 });
    const keys: string[] = [];
    while (keys.length < 40) {
      const { status, json } = await rest.post<{ secret: string }>(`${path}/keys`, { name: "app" });
      expect(status).toBe(201);
      keys.push(json.secret);
    }
    const urls = [platform.admin.inference_url, ...others.map(({ url }) => url)];
    // A call costs 0.324 cents.
    const spent = await passing(urls, 2_000, 2_000, (at) => keys[at % keys.length] ?? "");
    expect(spent).toEqual({ ok: 308, cost_circuit_open: 1_692 });
    const settings = async () =>
      (await rest.get<{ circuit: { open: boolean; spent_cents: number } }>(`${path}/settings`)).json;
    await waitUntil(
      "the circuit is open",
      async () => {
        await passing(urls, 1, 1, () => keys[0] ?? "");
        const { circuit } = await settings();
        return circuit.open && circuit.spent_cents > 99;
      },
      { withinMs: 10_000 },
    );
    expect((await put("settings", { monthly_cost_limit_cents: 50, reset_circuit: true })).json["code"]).toBe(
      "limit_still_exceeded",
    );
    const raised = await put("settings", { monthly_cost_limit_cents: 200, reset_circuit: true });
    expect(raised.json["circuit"]).toMatchObject({ open: false });
    expect(await passing(urls, 1, 1, () => keys[0] ?? "")).toEqual({ ok: 1 });
    const events = await waitUntil("the events are told", async () => {
      const { json } = await rest.get<{ events: { event_type: string }[] }>("/events?limit=200");
      const types = json.events.map(({ event_type: type }) => type);
      return types.includes("inference.circuit_closed") && types;
    });
    for (const type of ["inference.budget_warning", "inference.circuit_opened", "inference.circuit_closed"])
      expect(events.filter((each) => each === type)).toEqual([type]);
  }, 60_000);

  it("charges what a killed process had reserved, once, and serves on without controllers", async () => {
    const [other] = others;
    if (other === undefined) throw new Error("there is no other process");
    const { secret } = await newKey({ monthly_token_limit: 100_000 });
    const held = chat(secret, "held", {}, other.url).catch(() => undefined);
    await waitUntil("the provider has the call", () => provider.held === 1);
    await other.kill9();
    await held;
    const [controller = 0] = platform.processes().controllers;
    killAtOnce(controller, "SIGSTOP");
    try {
      await other.start();
      expect(await codeOf(chat(secret, "plain", {}, other.url))).toBe("ok");
    } finally {
      killAtOnce(controller, "SIGCONT");
    }
    const item = await waitUntil("it is in usage", async () =>
      (await usageBy("model")).items.find(({ model }) => model === "provider_c/held"),
    );
    expect(item).toMatchObject({ requests: 1, estimated_requests: 1, prompt_tokens: 16, completion_tokens: 50 });
    provider.release();
    await other.kill9();
    await other.start();
    expect(await codeOf(chat(secret, "plain", {}, other.url))).toBe("ok");
    const again = (await usageBy("model")).items.find(({ model }) => model === "provider_c/held");
    expect(again).toEqual(item);
  }, 60_000);

  it("tells of itself on a socket of its own", async () => {
    const dispatcher = new Agent({
      connect: { socketPath: join(platform.directory, "run", "inference-metrics.sock") },
    });
    const text = await (await undiciFetch("http://inference/metrics", { dispatcher })).text();
    await dispatcher.destroy();
    expect(text).toContain('holdfast_inference_requests_total{status="200",code="ok",provider="provider_c"}');
    expect(text).toContain("holdfast_inference_controller_connected 1");
  });

  it("keeps keys and prompts where nobody reads them", async () => {
    const stored = [...(await dumpEtcd(platform.directory))].flat().join("\n");
    const files = filesBelow(platform.directory, ["etcd", "history", "keys", "machines"]);
    const written = files.map((file) => readFileSync(file, "latin1")).join("\n");
    const told = [...platform.errorBodies, ...others.map(({ output }) => output)].join("\n");
    for (const secret of [providerKey, plantedPrompt, ...secrets])
      for (const text of [stored, written, told]) expect(text.includes(secret)).toBe(false);
  });

  /** How so many calls end, by their codes, of which some are under way at a time. */
  async function passing(
    urls: readonly string[],
    count: number,
    atOnce: number,
    secretOf: (at: number) => string,
  ): Promise<Record<string, number>> {
    const ends: Record<string, number> = {};
    const body = JSON.stringify({
      model: "provider_c/uses-16-50",
      max_tokens: 50,
      messages: [{ role: "user", content: plantedPrompt }],
    });
    await inParallel(
      Array.from({ length: count }, (_, at) => at),
      atOnce,
      async (at) => {
        const answer = await undiciFetch(`${urls[at % urls.length]}/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${secretOf(at)}` },
          body,
          dispatcher: agent,
        });
        const { error } = (await answer.json()) as { error?: { code: string } };
        const end = error?.code ?? "ok";
        ends[end] = (ends[end] ?? 0) + 1;
      },
    );
    return ends;
  }
});

async function inParallel<T>(items: readonly T[], atOnce: number, work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
}

function filesBelow(directory: string, without: readonly string[]): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => !without.includes(name.split("/")[0] ?? ""))
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile());
}
