import { join } from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInferenceCallers, type InferenceCallers, tokensOfCall } from "../support/platform/inference-callers.ts";
import { type InferenceProcess, startInferenceProcess } from "../support/platform/inference-process.ts";
import { createOrganizations, type Organizations } from "../support/platform/organizations.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { type ScriptedProvider, startScriptedProvider } from "../support/servers/scripted-provider.ts";
import { waitUntil } from "../support/wait-until.ts";

const calls = 2_000;
/** Of a call of 66 tokens at the usual price. */
const microcentsOfCall = 16 * 1_500 + 50 * 6_000;

interface Settings {
  readonly circuit: { readonly open: boolean; readonly spent_cents: number };
}

describe("processes of the inference proxy", () => {
  let provider: ScriptedProvider;
  let platform: Platform;
  let organizations: Organizations;
  let its: InferenceCallers;
  let other: InferenceProcess;

  beforeAll(async () => {
    provider = await startScriptedProvider();
    platform = await startPlatform({
      environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8", HOLDFAST_INFERENCE_PROCESSES: "3" },
    });
    organizations = createOrganizations(platform);
    its = createInferenceCallers(platform, await organizations.first());
    await configure(its, 1_000_000);
    other = await startInferenceProcess(platform);
  });
  afterAll(async () => {
    await other?.remove();
    await its?.close();
    organizations?.close();
    await platform?.remove();
    await provider?.close();
  });

  async function configure(whose: InferenceCallers, cents: number): Promise<void> {
    const { url, authority } = provider;
    await whose.put("providers", { provider: "provider_c", api_key: "k", base_url: url, ca_certificate: authority });
    await whose.put("settings", { monthly_cost_limit_cents: cents });
  }

  it.each(["one process", "three that share a port"])(
    "let exactly as much of 2,000 calls at once pass as fits each limit, and tell of the circuit, on %s",
    async (which) => {
      const urls = [which === "one process" ? other.url : platform.admin.inference_url];
      const rated = await its.newKey({ rate_limit_rpm: 130 });
      expect(await its.ends(urls, calls, () => rated.secret)).toEqual({ ok: 130, rate_limited: calls - 130 });
      const poor = await its.newKey({ monthly_token_limit: tokensOfCall * 97 + tokensOfCall - 1 });
      expect(await its.ends(urls, calls, () => poor.secret)).toEqual({ ok: 97, token_ceiling_exceeded: calls - 97 });

      const organization = await organizations.create(which.replaceAll(" ", "-"));
      const rest = platform.rest.as((await organizations.createKey(organization)).authorization);
      const theirs = createInferenceCallers(platform, organization, rest);
      const limitCents = 100;
      await configure(theirs, limitCents);
      const keys: string[] = [];
      while (keys.length < 10) keys.push((await theirs.newKey()).secret);
      const secretOf = (at: number) => keys[at % keys.length] ?? "";
      const fits = Math.floor((limitCents * 1_000_000) / microcentsOfCall);
      expect(await theirs.ends(urls, calls, secretOf)).toEqual({ ok: fits, cost_circuit_open: calls - fits });

      await waitUntil("the circuit is open", async () => {
        await theirs.ends(urls, 1, secretOf);
        const { circuit } = (await rest.get<Settings>(`${theirs.base}/settings`)).json;
        return circuit.open && circuit.spent_cents > limitCents - 1;
      });
      const less = await theirs.put("settings", { monthly_cost_limit_cents: 50, reset_circuit: true });
      expect([less.status, less.json["code"]]).toEqual([409, "limit_still_exceeded"]);
      const raised = await theirs.put("settings", { monthly_cost_limit_cents: 200, reset_circuit: true });
      expect(raised.json["circuit"]).toMatchObject({ open: false });
      expect(await theirs.ends(urls, 1, secretOf)).toEqual({ ok: 1 });
      const events = await waitUntil("the events are told", async () => {
        const { json } = await rest.get<{ events: { event_type: string }[] }>("/events?limit=200");
        const types = json.events.map(({ event_type: type }) => type);
        return types.includes("inference.circuit_closed") && types;
      });
      for (const type of ["inference.budget_warning", "inference.circuit_opened", "inference.circuit_closed"])
        expect(events.filter((each) => each === type)).toEqual([type]);
      await theirs.close();
    },
    120_000,
  );

  it("have a share of the calls each", async () => {
    for (const name of ["inference-metrics", "inference-metrics-2", "inference-metrics-3"]) {
      const socketPath = join(platform.directory, "run", `${name}.sock`);
      const dispatcher = new Agent({ connect: { socketPath } });
      const text = await (await request("http://inference/metrics", { dispatcher })).body.text();
      await dispatcher.destroy();
      expect(text).toMatch(/holdfast_inference_requests_total\{status="200",code="ok",provider="provider_c"\} [1-9]/);
    }
  });
});
