import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInferenceCallers, type InferenceCallers } from "@holdfast/testing/platform/inference-callers.ts";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type ScriptedProvider, startScriptedProvider } from "@holdfast/testing/servers/scripted-provider.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { maxTokens, providerKey, wrongResponses } from "./inference/wrong-responses.ts";

const modelOf = (at: number) => `wrong-${at}`;
const price = { input: 200, output: 600, max_output_tokens: 50 };
const catalog = {
  providers: [
    {
      name: "provider_c",
      eu: "yes",
      capabilities: { chat: true, embeddings: true },
      silence_seconds: 2,
      models: [{ name: "cached", ...price, cached_input: 20 }],
    },
  ],
};
const cachedUsage = {
  prompt_tokens: 1_000,
  completion_tokens: 10,
  prompt_tokens_details: { cached_tokens: 900 },
};

describe("the inference proxy", () => {
  let provider: ScriptedProvider;
  let platform: Platform;
  let fixture: InferenceCallers;
  let secret = "";
  const directory = mkdtempSync(join(tmpdir(), "holdfast-catalog-"));

  beforeAll(async () => {
    const responses = new Map(wrongResponses.map(({ respond }, at) => [modelOf(at), respond]));
    responses.set("silent", () => undefined);
    responses.set("cached", (response) => {
      const choices = [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ choices, usage: cachedUsage }));
    });
    provider = await startScriptedProvider(responses);
    const file = join(directory, "catalog.json");
    writeFileSync(file, JSON.stringify(catalog));
    platform = await startPlatform({
      environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8", HOLDFAST_INFERENCE_CATALOG: file },
    });
    const organizations = createOrganizations(platform);
    fixture = createInferenceCallers(platform, await organizations.first());
    organizations.close();
    const configured = { base_url: provider.url, ca_certificate: provider.authority, api_key: providerKey };
    await fixture.put("settings", { monthly_cost_limit_cents: 100_000 });
    await fixture.put("providers", { provider: "provider_c", ...configured });
    ({ secret } = await fixture.newKey());
  });
  afterAll(async () => {
    await fixture?.close();
    await platform?.remove();
    await provider?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function call(model: string, more: object = {}): Promise<{ readonly status: number; readonly text: string }> {
    const messages = [{ role: "user", content: "hello" }];
    const body = JSON.stringify({ model: `provider_c/${model}`, messages, max_tokens: maxTokens, ...more });
    return await callWith(body);
  }

  async function callWith(body: string): Promise<{ readonly status: number; readonly text: string }> {
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fixture.send("/chat/completions", { method: "POST", headers, body });
    return { status: response.status, text: await response.text() };
  }

  async function chargesOf(last: string) {
    return await waitUntil("the last call is in usage", async () => {
      const { items } = await fixture.usage("model");
      const byModel = new Map(items.map((item) => [(item.model ?? "").slice("provider_c/".length), item]));
      return byModel.has(last) && byModel;
    });
  }

  it("reports a wrong response with the provider's text, and charges only completions", async () => {
    const seen = new Map<string, { readonly status: number; readonly hasBody: boolean | string }>();
    for (const [at, { name, isStream, body }] of wrongResponses.entries()) {
      const { status, text } = await call(modelOf(at), { stream: isStream === true });
      seen.set(name, { status, hasBody: text.includes(body) || text });
      expect(text, name).not.toContain(providerKey);
    }
    expect(Object.fromEntries(seen)).toEqual(
      Object.fromEntries(wrongResponses.map(({ name, status }) => [name, { status, hasBody: true }])),
    );
    await call("plain");
    const charges = await chargesOf("plain");
    const charged = wrongResponses.map(({ name }, at) => {
      const item = charges.get(modelOf(at));
      return [name, item && [item.requests, item.prompt_tokens, item.completion_tokens, item.estimated_requests]];
    });
    const expected = wrongResponses.map(({ name, charge }) => {
      if (charge === undefined) return [name, undefined];
      const { prompt, completion } = charge;
      const isEstimated = charge.isEstimated === true || prompt === "estimate" || completion === "estimate";
      // The prompt has 20 bytes and one message, and its estimate is its reservation.
      const promptTokens = prompt === "estimate" ? 11 : prompt;
      const completionTokens = completion === "estimate" ? expect.toSatisfy(isWithinReservation) : completion;
      return [name, [1, promptTokens, completionTokens, isEstimated ? 1 : 0]];
    });
    expect(charged).toEqual(expected);
    const { json } = await platform.rest.get<{ events: { event_type: string; data: { model: string } }[] }>(
      "/events?limit=100",
    );
    const above = json.events.filter(({ event_type: type }) => type === "inference.usage_above_reservation");
    const far = wrongResponses.findIndex(({ name }) => name === "far more usage than reserved");
    expect(above.map(({ data }) => data.model)).toEqual([`provider_c/${modelOf(far)}`]);
  }, 60_000);

  it("forwards the text of a request, but for model and usage", async () => {
    const text = `{ "seed":90071992547409931234,"model" : "provider_c/plain","top_p":1.0,"messages":[{"role":"user","content":"\\u00fc"}]}`;
    expect((await callWith(text)).status).toBe(200);
    expect(provider.calls.at(-1)?.text).toBe(text.replace("provider_c/plain", "plain"));
    const streamed = text.replace("{ ", '{"stream":true,');
    expect((await callWith(streamed)).status).toBe(200);
    const withUsage = '"plain","stream_options":{"include_usage":true}';
    expect(provider.calls.at(-1)?.text).toBe(streamed.replace('"provider_c/plain"', withUsage));
  });

  it("ends a call after the silence that the provider's catalog entry allows", async () => {
    expect(await call("silent")).toMatchObject({ status: 504, text: expect.stringContaining("upstream_timeout") });
    expect((await chargesOf("plain")).has("silent")).toBe(false);
  }, 30_000);

  it("charges cached tokens at their own price", async () => {
    await call("cached", { max_tokens: 50, messages: [{ role: "user", content: "x".repeat(3_000) }] });
    const charges = await chargesOf("cached");
    expect(charges.get("cached")?.cost_cents).toBeCloseTo((100 * 200 + 900 * 20 + 10 * 600) / 1e6, 9);
  });
});

function isWithinReservation(tokens: unknown): boolean {
  return typeof tokens === "number" && tokens > 0 && tokens <= maxTokens;
}
