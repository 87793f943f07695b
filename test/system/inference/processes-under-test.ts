import { createInferenceCallers, type InferenceCallers } from "@holdfast/testing/platform/inference-callers.ts";
import { type InferenceProcess, startInferenceProcess } from "@holdfast/testing/platform/inference-process.ts";
import { createOrganizations, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type ScriptedProvider, startScriptedProvider } from "@holdfast/testing/servers/scripted-provider.ts";

/** Three processes of the proxy that share a port, a fourth on another port, and a scripted provider. */
export interface ProcessesUnderTest {
  readonly provider: ScriptedProvider;
  readonly platform: Platform;
  readonly organizations: Organizations;
  readonly fixture: InferenceCallers;
  readonly fourth: InferenceProcess;
  /** Sets the provider and the monthly limit of an organization. */
  configure(whose: InferenceCallers, limitCents: number): Promise<void>;
  remove(): Promise<void>;
}

/** Price of a call of 66 tokens. */
export const microcentsOfCall = 16 * 1_500 + 50 * 6_000;

export async function startProcesses(): Promise<ProcessesUnderTest> {
  const provider = await startScriptedProvider();
  const platform = await startPlatform({
    environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8", HOLDFAST_INFERENCE_PROCESSES: "3" },
  });
  const organizations = createOrganizations(platform);
  const fixture = createInferenceCallers(platform, await organizations.first());

  async function configure(whose: InferenceCallers, limitCents: number): Promise<void> {
    const { url, authority } = provider;
    await whose.put("providers", { provider: "provider_c", api_key: "k", base_url: url, ca_certificate: authority });
    await whose.put("settings", { monthly_cost_limit_cents: limitCents });
  }

  await configure(fixture, 1_000_000);
  const fourth = await startInferenceProcess(platform);
  return {
    provider,
    platform,
    organizations,
    fixture,
    fourth: fourth,
    configure,
    async remove() {
      await fourth.remove();
      await fixture.close();
      organizations.close();
      await platform.remove();
      await provider.close();
    },
  };
}
