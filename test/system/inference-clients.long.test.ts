import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInferenceCallers, type InferenceCallers } from "@holdfast/testing/platform/inference-callers.ts";
import { createOrganizations, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type LlamaServer, startLlamaServer } from "@holdfast/testing/servers/llama-server.ts";
import { runPythonClients } from "@holdfast/testing/servers/python-environment.ts";
import { type ScriptedProvider, startScriptedProvider } from "@holdfast/testing/servers/scripted-provider.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

type Tokens = readonly [prompt: number, completion: number];

interface ClientResult {
  readonly chat: { readonly text: string; readonly usage: Tokens };
  readonly stream: { readonly text: string; readonly usages: readonly Tokens[] };
  readonly litellm: { readonly text: string; readonly usage: Tokens };
  readonly litellm_stream: { readonly text: string; readonly usages: readonly Tokens[] };
  readonly embeddings: number;
}

describe("clients of OpenAI's API for Python", () => {
  let provider: ScriptedProvider;
  let llama: LlamaServer | string;
  let platform: Platform;
  let organizations: Organizations;
  let fixture: InferenceCallers;

  beforeAll(async () => {
    provider = await startScriptedProvider();
    llama = await startLlamaServer();
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    organizations = createOrganizations(platform);
    fixture = createInferenceCallers(platform, await organizations.first());
    const { url, authority } = provider;
    await fixture.put("providers", { provider: "provider_c", api_key: "k", base_url: url, ca_certificate: authority });
    await fixture.put("settings", { monthly_cost_limit_cents: 100_000 });
  }, 300_000);
  afterAll(async () => {
    await fixture?.close();
    organizations?.close();
    await platform?.remove();
    await provider?.close();
    if (typeof llama === "object") await llama.close();
  });

  async function resultOf(model: string): Promise<ClientResult> {
    const { secret } = await fixture.newKey();
    const poor = await fixture.newKey({ monthly_token_limit: 1 });
    return (await runPythonClients("inference_clients.py", {
      BASE_URL: platform.admin.inference_url,
      KEY: secret,
      POOR_KEY: poor.secret,
      MODEL: model,
      SSL_CERT_FILE: platform.admin.ca_file,
    })) as ClientResult;
  }

  it("chat, stream, embed, and distinguish errors without useless retries", async () => {
    expect(await resultOf("provider_c/plain")).toEqual({
      chat: { text: "Hello there", usage: [11, 3] },
      stream: { text: "Grüß dich 🙂", usages: [[11, 3]] },
      embeddings: 1,
      litellm: { text: "Hello there", usage: [11, 3] },
      // litellm adds its own count of usage only on request.
      litellm_stream: { text: "Grüß dich 🙂", usages: expect.any(Array) },
      unknown_key: ["AuthenticationError", 401, "invalid_key"],
      no_prefix: ["BadRequestError", 400, "invalid_model"],
      no_provider: ["APIStatusError", 412, "provider_not_configured"],
      over_the_ceiling: { error: ["RateLimitError", 429, "token_ceiling_exceeded"], requests: 1 },
      requests: expect.any(Number),
    });
  }, 600_000);

  it("work with a real server of models too, and the proxy reports its usage", async (context) => {
    if (typeof llama === "string") return context.skip(llama);
    const { url, authority, apiKey } = llama;
    const real = { provider: "provider_e", api_key: apiKey, base_url: url, ca_certificate: authority };
    expect((await fixture.put("providers", real)).status).toBe(200);
    const usage = await resultOf("provider_e/smoke");
    expect(usage.chat.usage[1]).toBeGreaterThan(0);
    expect(usage.stream.usages).toHaveLength(1);
    expect(usage.embeddings).toBe(2);
    const tokens = [usage.chat.usage, usage.stream.usages[0] ?? [0, 0], usage.litellm.usage];
    const completion = tokens.reduce((sum, [, each]) => sum + each, 0);
    const item = await waitUntil("usage has all five calls", async () => {
      const found = (await fixture.usage("model")).items.find(({ model }) => model === "provider_e/smoke");
      return found?.requests === 5 && found;
    });
    expect(item.estimated_requests).toBe(0);
    // The stream of litellm is the only one whose usage this test has not seen: at most its eight tokens.
    expect(item.completion_tokens).toBeGreaterThan(completion);
    expect(item.completion_tokens).toBeLessThanOrEqual(completion + 8);
    await fixture.put("providers", { provider: "provider_e", api_key: "wrong" });
    const { secret } = await fixture.newKey();
    await expect(fixture.chat(secret, "x", { model: "provider_e/smoke" })).rejects.toThrow(/refuses the key/);
  }, 600_000);
});
