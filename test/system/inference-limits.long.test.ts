import { InferenceProcessService } from "@holdfast/proto/holdfast/admin/v1/inference_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createInferenceCallers } from "@holdfast/testing/platform/inference-callers.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { isAlive, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { microcentsOfCall, type ProcessesUnderTest, startProcesses } from "./inference/processes-under-test.ts";

interface Settings {
  readonly circuit: { readonly unaccounted_cents: number };
}

describe("limits of the inference proxy", () => {
  let under: ProcessesUnderTest;
  beforeAll(async () => {
    under = await startProcesses();
  });
  afterAll(() => under?.remove());

  it("are released from a process that an operator declares lost", async () => {
    const { platform, organizations, fourth, configure } = under;
    const organization = await organizations.create("losers");
    const rest = platform.rest.as((await organizations.createKey(organization)).authorization);
    const callers = createInferenceCallers(platform, organization, rest);
    await configure(callers, 10);
    const { secret } = await callers.newKey();
    const platformUrls = [platform.admin.inference_url];
    const fits = Math.floor(10_000_000 / microcentsOfCall);
    expect(await callers.resultsOf([fourth.url], 1, () => secret)).toEqual({ ok: 1 });
    await waitUntil("its event is emitted", async () => (await callers.usage("key")).total.requests === 1);
    const list = async () =>
      (await asOperator(platform, InferenceProcessService, (rpcs) => rpcs.listInferenceProcesses({}))).processes;
    const following = new Set((await list()).map(({ id }) => id));
    expect(following.size).toBe(4);
    await fourth.kill9();
    const lost = await waitUntil("it is away", async () => (await list()).find(({ state }) => state === "away"));
    expect(lost.holds).toBeGreaterThan(0);
    // The other processes may use the unleased part, and the leases of the lost process still count.
    const before = await callers.resultsOf(platformUrls, 2 * fits, () => secret);
    expect(before["ok"]).toBeLessThan(fits - 1);
    const declare = (processId: string) =>
      asOperator(platform, InferenceProcessService, (rpcs) => rpcs.declareInferenceProcessLost({ processId }));
    const running = [...following].find((id) => id !== lost.id) ?? "";
    await expect(declare(running)).rejects.toThrow(/follows a controller/);
    await declare(lost.id);
    expect((await list()).find(({ id }) => id === lost.id)).toMatchObject({ state: "lost", holds: 0 });
    // Unspent leases of another process return to the one that requests them.
    let spent = 1 + (before["ok"] ?? 0);
    await waitUntil("all that fits is spent", async () => {
      spent += (await callers.resultsOf(platformUrls, 2 * fits, () => secret))["ok"] ?? 0;
      return spent >= fits;
    });
    expect(spent).toBe(fits);
    const unaccounted = async () =>
      (await rest.get<Settings>(`${callers.base}/settings`)).json.circuit.unaccounted_cents;
    expect(await unaccounted()).toBeGreaterThan(0);
    // A process that returns after it was declared lost has only new leases.
    await fourth.start();
    await waitUntil("it is back", async () => (await list()).every(({ state }) => state === "following"));
    expect(await unaccounted()).toBe(0);
    expect(await callers.resultsOf([fourth.url], 1, () => secret)).toEqual({ cost_circuit_open: 1 });
    await callers.put("settings", { monthly_cost_limit_cents: 20, reset_circuit: true });
    expect(await callers.resultsOf([fourth.url], 1, () => secret)).toEqual({ ok: 1 });
    await callers.close();
  }, 60_000);

  it("lets streams end when the platform stops, for longer than other programs", async () => {
    const { platform, provider, fixture } = under;
    const { secret } = await fixture.newKey();
    const streams = Array.from({ length: 24 }, async () => {
      const response = await fixture.send("/chat/completions", {
        method: "POST",
        headers: { authorization: `Bearer ${secret}` },
        body: JSON.stringify({ model: "provider_c/held", stream: true, messages: [{ role: "user", content: "x" }] }),
      });
      return await response.text();
    });
    await waitUntil("the provider has all of them", () => provider.waiting === streams.length);
    // A program that does not react to the stop is killed at the end of the grace period.
    const { dns = 0 } = platform.processes();
    killImmediately(dns, "SIGSTOP");
    const stopped = platform.stop();
    await waitUntil("no more calls are taken", () =>
      fixture.send("/models").then(
        () => false,
        () => true,
      ),
    );
    await waitUntil("other programs are killed", () => !isAlive(dns));
    provider.release();
    for (const text of await Promise.all(streams)) expect(text).toMatch(/"usage".*data: \[DONE\]\n\n$/s);
    await stopped;
  }, 60_000);
});
