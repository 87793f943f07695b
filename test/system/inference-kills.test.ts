import { setTimeout as delay } from "node:timers/promises";
import { Agent, fetch as undiciFetch } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type InferenceProcess, startInferenceProcess } from "../support/platform/inference-process.ts";
import { createOrganizations, type Organizations } from "../support/platform/organizations.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { killAtOnce } from "../support/platform/platform-processes.ts";
import { type ScriptedProvider, startScriptedProvider } from "../support/servers/scripted-provider.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Usage {
  readonly total: {
    readonly requests: number;
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly estimated_requests: number;
  };
}

const kills = 20;
/** Each call reserves and uses as much. */
const tokensOfCall = 66;

describe("a process of the inference proxy that is killed", () => {
  let provider: ScriptedProvider;
  let platform: Platform;
  let organizations: Organizations;
  let other: InferenceProcess;
  let agent: Agent;
  let base: string;

  beforeAll(async () => {
    provider = await startScriptedProvider();
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    organizations = createOrganizations(platform);
    agent = new Agent({ connect: { ca: platform.ca }, connections: 64, allowH2: false });
    base = `/organizations/${await organizations.first()}/inference`;
    const { url, authority } = provider;
    const its = { provider: "provider_c", api_key: "k", base_url: url, ca_certificate: authority };
    await platform.rest.call("PUT", `${base}/providers`, { body: its });
    await platform.rest.call("PUT", `${base}/settings`, { body: { monthly_cost_limit_cents: 100_000 } });
    other = await startInferenceProcess(platform);
  });
  afterAll(async () => {
    await other?.remove();
    await agent?.destroy();
    organizations?.close();
    await platform?.remove();
    await provider?.close();
  });

  async function call(url: string, secret: string): Promise<string> {
    const answer = await undiciFetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}` },
      body: JSON.stringify({
        model: "provider_c/uses-16-50",
        max_tokens: 50,
        messages: [{ role: "user", content: "nineteen characters" }],
      }),
      dispatcher: agent,
    });
    const { error } = (await answer.json()) as { error?: { code: string } };
    return error?.code ?? "ok";
  }

  it(`${kills} times, and a controller with it, loses no charge, makes none twice, and passes no limit`, async () => {
    const limit = tokensOfCall * 600;
    const { json } = await platform.rest.post<{ secret: string }>(`${base}/keys`, {
      name: "app",
      monthly_token_limit: limit,
    });
    let sent = 0;
    let isOver = false;
    const answered = { ok: 0, refused: 0, broken: 0 };
    const worker = async (url: string) => {
      while (!isOver) {
        sent += 1;
        const end = await call(url, json.secret).catch(() => "broken");
        if (end === "ok") answered.ok += 1;
        else if (end === "token_ceiling_exceeded") answered.refused += 1;
        else answered.broken += 1;
        await delay(end === "ok" ? 25 : 50);
      }
    };
    const workers = [other.url, other.url, other.url, platform.admin.inference_url].map(worker);
    for (let kill = 0; kill < kills; kill += 1) {
      await delay(150 + 20 * kill);
      if (kill % 5 === 4) for (const controller of platform.processes().controllers) killAtOnce(controller);
      await other.kill9();
      await other.start();
    }
    await waitUntil("the limit is used up", () => answered.refused > 20);
    isOver = true;
    await Promise.all(workers);
    const charged = provider.ledger.get("uses-16-50");
    const usage = await waitUntil("usage has all of it", async () => {
      const before = (await platform.rest.get<Usage>(`${base}/usage?group_by=key`)).json.total;
      await delay(2_000);
      const after = (await platform.rest.get<Usage>(`${base}/usage?group_by=key`)).json.total;
      return before.requests === after.requests && after;
    });
    const used = usage.prompt_tokens + usage.completion_tokens;
    expect(used).toBe(usage.requests * tokensOfCall);
    expect(used).toBeLessThanOrEqual(limit);
    // What the provider charged is in usage; beyond it only what a kill left open, as estimated.
    expect(usage.requests).toBeGreaterThanOrEqual(charged?.requests ?? 0);
    expect(usage.requests - (charged?.requests ?? 0)).toBeLessThanOrEqual(usage.estimated_requests);
    expect(usage.requests).toBeGreaterThanOrEqual(answered.ok);
    // Nothing is stranded: at rest less is left than a call needs.
    expect(limit - used).toBeLessThan(tokensOfCall);
    expect(sent).toBeGreaterThan(usage.requests);
  }, 300_000);
});
