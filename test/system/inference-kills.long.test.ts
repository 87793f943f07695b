import { setTimeout as delay } from "node:timers/promises";
import { Agent, fetch as undiciFetch } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tokensOfCall, type Usage, type UsageItem } from "@holdfast/testing/platform/inference-callers.ts";
import { type InferenceProcess, startInferenceProcess } from "@holdfast/testing/platform/inference-process.ts";
import { createOrganizations, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { type ScriptedProvider, startScriptedProvider } from "@holdfast/testing/servers/scripted-provider.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const kills = 20;

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
    const fixture = { provider: "provider_c", api_key: "k", base_url: url, ca_certificate: authority };
    await platform.rest.call("PUT", `${base}/providers`, { body: fixture });
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

  const usage = async (by: "model" | "key") => (await platform.rest.get<Usage>(`${base}/usage?group_by=${by}`)).json;

  async function call(url: string, secret: string, model = "uses-16-50"): Promise<string> {
    const response = await undiciFetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}` },
      body: JSON.stringify({
        model: `provider_c/${model}`,
        max_tokens: 50,
        messages: [{ role: "user", content: "nineteen characters" }],
      }),
      dispatcher: agent,
    });
    const { error } = (await response.json()) as { error?: { code: string } };
    return error?.code ?? "ok";
  }

  it("charges its reservations, once, and continues to serve without controllers", async () => {
    const { json } = await platform.rest.post<{ secret: string }>(`${base}/keys`, { name: "app" });
    const ended = call(other.url, json.secret, "held").catch(() => "broken");
    await waitUntil("the provider has the call", () => provider.waiting === 1);
    await other.kill9();
    expect(await ended).toBe("broken");
    const [controller = 0] = platform.processes().controllers;
    killImmediately(controller, "SIGSTOP");
    try {
      await other.start();
      expect(await call(other.url, json.secret)).toBe("ok");
    } finally {
      killImmediately(controller, "SIGCONT");
    }
    const pendingUsage = async () => (await usage("model")).items.find(({ model }) => model === "provider_c/held");
    const item = await waitUntil("it is in usage", pendingUsage);
    expect(item).toMatchObject({ requests: 1, estimated_requests: 1, prompt_tokens: 16, completion_tokens: 50 });
    provider.release();
    await other.kill9();
    await other.start();
    expect(await call(other.url, json.secret)).toBe("ok");
    expect(await pendingUsage()).toEqual(item);
  }, 60_000);

  it(`${kills} times, with a controller, loses no charge, doubles none, and exceeds no limit`, async () => {
    const limit = tokensOfCall * 600;
    const { json } = await platform.rest.post<{ id: string; secret: string }>(`${base}/keys`, {
      name: "app",
      monthly_token_limit: limit,
    });
    const chargedBefore = provider.ledger.get("uses-16-50")?.requests ?? 0;
    let sent = 0;
    let isFinished = false;
    const results = { ok: 0, refused: 0, broken: 0 };
    let refusedSinceOk = 0;
    const worker = async (url: string) => {
      while (!isFinished) {
        sent += 1;
        const end = await call(url, json.secret).catch(() => "broken");
        if (end === "ok") results.ok += 1;
        else if (end === "token_ceiling_exceeded") results.refused += 1;
        else results.broken += 1;
        refusedSinceOk = end === "token_ceiling_exceeded" ? refusedSinceOk + 1 : 0;
        // Time: the rate of a worker.
        await delay(end === "ok" ? 25 : 50);
      }
    };
    const workers = [other.url, other.url, other.url, platform.admin.inference_url].map(worker);
    for (let kill = 0; kill < kills; kill += 1) {
      // Time: the moment of the kill.
      await delay(150 + 20 * kill);
      if (kill % 5 === 4) for (const controller of platform.processes().controllers) killImmediately(controller);
      await other.kill9();
      await other.start();
    }
    await waitUntil("the limit is used up", () => refusedSinceOk > 40);
    isFinished = true;
    await Promise.all(workers);
    const charged = (provider.ledger.get("uses-16-50")?.requests ?? 0) - chargedBefore;
    const of = async () => (await usage("key")).items.find(({ key_id: id }) => id === json.id);
    const tokensIn = (item: UsageItem) => item.prompt_tokens + item.completion_tokens;
    // Idle processes return leases down to less than one call needs, so none is lost, and no call follows.
    const total = await waitUntil("usage has all of it", async () => {
      const item = await of();
      return item !== undefined && limit - tokensIn(item) < tokensOfCall && item;
    });
    const used = tokensIn(total);
    expect(used).toBe(total.requests * tokensOfCall);
    expect(used).toBeLessThanOrEqual(limit);
    // The provider's charges are in the usage; beyond them only estimates of calls that a kill left open.
    expect(total.requests).toBeGreaterThanOrEqual(charged);
    expect(total.requests - charged).toBeLessThanOrEqual(total.estimated_requests);
    expect(total.requests).toBeGreaterThanOrEqual(results.ok);
    expect(sent).toBeGreaterThan(total.requests);
  }, 300_000);
});
