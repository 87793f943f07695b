import { join } from "node:path";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInferenceCallers, tokensOfCall } from "@holdfast/testing/platform/inference-callers.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { microcentsOfCall, type ProcessesUnderTest, startProcesses } from "./inference/processes-under-test.ts";

const calls = 2_000;

interface Settings {
  readonly circuit: { readonly open: boolean; readonly spent_cents: number };
}

describe("processes of the inference proxy", () => {
  let under: ProcessesUnderTest;
  beforeAll(async () => {
    under = await startProcesses();
  });
  afterAll(() => under?.remove());

  it.each(["one process", "three that share a port"])(
    "admit exactly what fits each limit of 2,000 concurrent calls, and report the open circuit, on %s",
    async (which) => {
      const { platform, organizations, fixture, fourth, configure } = under;
      const urls = [which === "one process" ? fourth.url : platform.admin.inference_url];
      const rated = await fixture.newKey({ rate_limit_rpm: 130 });
      expect(await fixture.resultsOf(urls, calls, () => rated.secret)).toEqual({ ok: 130, rate_limited: calls - 130 });
      const poor = await fixture.newKey({ monthly_token_limit: tokensOfCall * 97 + tokensOfCall - 1 });
      expect(await fixture.resultsOf(urls, calls, () => poor.secret)).toEqual({
        ok: 97,
        token_ceiling_exceeded: calls - 97,
      });

      const organization = await organizations.create(which.replaceAll(" ", "-"));
      const rest = platform.rest.as((await organizations.createKey(organization)).authorization);
      const callers = createInferenceCallers(platform, organization, rest);
      const limitCents = 100;
      await configure(callers, limitCents);
      const keys: string[] = [];
      while (keys.length < 10) keys.push((await callers.newKey()).secret);
      const secretOf = (at: number) => keys[at % keys.length] ?? "";
      const fits = Math.floor((limitCents * 1_000_000) / microcentsOfCall);
      expect(await callers.resultsOf(urls, calls, secretOf)).toEqual({ ok: fits, cost_circuit_open: calls - fits });

      await waitUntil("the circuit is open", async () => {
        await callers.resultsOf(urls, 1, secretOf);
        const { circuit } = (await rest.get<Settings>(`${callers.base}/settings`)).json;
        return circuit.open && circuit.spent_cents > limitCents - 1;
      });
      const less = await callers.put("settings", { monthly_cost_limit_cents: 50, reset_circuit: true });
      expect([less.status, less.json["code"]]).toEqual([409, "limit_still_exceeded"]);
      const raised = await callers.put("settings", { monthly_cost_limit_cents: 200, reset_circuit: true });
      expect(raised.json["circuit"]).toMatchObject({ open: false });
      expect(await callers.resultsOf(urls, 1, secretOf)).toEqual({ ok: 1 });
      const events = await waitUntil("the events are emitted", async () => {
        const { json } = await rest.get<{ events: { event_type: string }[] }>("/events?limit=200");
        const types = json.events.map(({ event_type: type }) => type);
        return types.includes("inference.circuit_closed") && types;
      });
      for (const type of ["inference.budget_warning", "inference.circuit_opened", "inference.circuit_closed"])
        expect(events.filter((each) => each === type)).toEqual([type]);
      await callers.close();
    },
    120_000,
  );

  it("each serve a share of the calls", async () => {
    for (const name of ["inference-metrics", "inference-metrics-2", "inference-metrics-3"]) {
      const socketPath = join(under.platform.directory, "run", `${name}.sock`);
      const dispatcher = new Agent({ connect: { socketPath } });
      const text = await (await request("http://inference/metrics", { dispatcher })).body.text();
      await dispatcher.destroy();
      expect(text).toMatch(/holdfast_inference_requests_total\{status="200",code="ok",provider="provider_c"\} [1-9]/);
    }
  });
});
