import { X509Certificate } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { providerNamed } from "@holdfast/common/inference/catalog.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import { parseTarget } from "@holdfast/egress/target.ts";
import type { InferenceService, PutInferenceProviderRequest } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { type DestinedSecret, secretAfter } from "#kernel/secrets/destined-secret.ts";
import { requireAmount } from "#kernel/store/quota.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { mutate, type MutationOutcome } from "#access/mutate.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { type InferenceApiDeps, ownOrganization } from "../inference-api-deps.ts";
import { providerMessage } from "../inference-message.ts";
import {
  type ConfiguredProvider,
  type InferenceSettings,
  inferenceSettingsKind,
  providerKeyBinding,
  providersMax,
} from "./inference-settings.ts";
import { newSettings } from "./settings-handlers.ts";

type ProviderHandlers = Pick<
  Handlers<typeof InferenceService>,
  "putInferenceProvider" | "listInferenceProviders" | "deleteInferenceProvider"
>;

/** The RPCs of an organization's providers. */
export function createProviderHandlers(deps: InferenceApiDeps): ProviderHandlers {
  const { settings, catalog, sealer, clock, feed } = deps;

  async function change<A>(verb: string, call: Call, work: (unit: Changes) => MutationOutcome<A>): Promise<A> {
    const mutation = { action: `inference-provider.${verb}`, kind: inferenceSettingsKind.name, visibleIn: [settings] };
    const answer = await mutate(deps, call, mutation, work);
    await feed.untilServed();
    return answer;
  }

  return {
    async putInferenceProvider(request, call) {
      const organizationId = ownOrganization(request.orgId, call);
      const { provider } = request;
      const catalogProvider = providerNamed(catalog, provider);
      if (catalogProvider === undefined)
        throw invalid({ field: "provider", code: "unknown_provider", detail: "is not in the catalog of providers" });
      const baseUrl = request.baseUrl && (await checkedBaseUrl(request.baseUrl, deps.egress, call.signal));
      const caCertificate = request.caCertificate && checkedAuthorities(request.caCertificate);
      return change("put", call, (unit) => {
        const before = settings.get(organizationId);
        const object = before?.object ?? newSettings(organizationId, clock.now());
        const { providers } = object.spec;
        const earlier = Object.hasOwn(providers, provider) ? providers[provider] : undefined;
        if (earlier === undefined) {
          const figures = { used: Object.keys(providers).length, requested: 1, limit: providersMax };
          requireAmount({ name: "providers", label: "providers" }, figures, "The organization has");
        }
        const bindingOf = (each: Target) => providerKeyBinding(organizationId, provider, each);
        const stored = earlier && { sealed: earlier.sealedKey, binding: bindingOf(earlier) };
        const configured = changed(request, earlier, { baseUrl, caCertificate, now: clock.now() }, (target) =>
          secretAfter(sealer, { field: "api_key", provided: request.apiKey, stored, binding: bindingOf(target) }),
        );
        if (catalogProvider.needsUrl === true && configured.baseUrl === "")
          throw invalid({ field: "base_url", code: "required", detail: `is required for ${provider}` });
        const response = providerMessage(provider, configured, catalog);
        const after: InferenceSettings = {
          ...object,
          metadata: before === undefined ? object.metadata : nextMetadata(object.metadata, clock.now()),
          spec: { ...object.spec, providers: { ...providers, [provider]: configured } },
        };
        if (before === undefined) unit.create(inferenceSettingsKind, after);
        else unit.update(inferenceSettingsKind, before, after);
        return { id: organizationId, response };
      });
    },

    async listInferenceProviders({ orgId }, call) {
      const organizationId = ownOrganization(orgId, call);
      const providers = Object.entries(settings.get(organizationId)?.object.spec.providers ?? {});
      return { providers: providers.map(([name, configured]) => providerMessage(name, configured, catalog)) };
    },

    deleteInferenceProvider: ({ orgId, provider }, call) =>
      change("delete", call, (unit) => {
        const before = settings.get(ownOrganization(orgId, call));
        const providers = before?.object.spec.providers ?? {};
        if (before === undefined || !Object.hasOwn(providers, provider))
          throw new HoldfastError("OBJECT_NOT_FOUND", "The organization has not configured this provider.");
        const { [provider]: _, ...others } = providers;
        const { object } = before;
        unit.update(inferenceSettingsKind, before, {
          ...object,
          metadata: nextMetadata(object.metadata, clock.now()),
          spec: { ...object.spec, providers: others },
        });
        return { id: object.metadata.id, result: create(EmptySchema) };
      }),
  };
}

type Target = Pick<ConfiguredProvider, "baseUrl" | "caCertificate">;

/**
 * The provider after a request: values of the request replace stored ones. `keyFor` returns the key sealed for a
 * target, or throws.
 */
function changed(
  { enabled, euEndpoint }: PutInferenceProviderRequest,
  earlier: ConfiguredProvider | undefined,
  requested: { readonly baseUrl: string | undefined; readonly caCertificate: string | undefined; readonly now: number },
  keyFor: (target: Target) => DestinedSecret,
): ConfiguredProvider {
  const baseUrl = requested.baseUrl ?? earlier?.baseUrl ?? "";
  // A user declares an EU endpoint for one URL: another URL resets it.
  const caCertificate = requested.caCertificate ?? earlier?.caCertificate ?? "";
  const hasNewUrl = earlier !== undefined && baseUrl !== earlier.baseUrl;
  return {
    sealedKey: keyFor({ baseUrl, caCertificate }),
    enabled: enabled ?? earlier?.enabled ?? true,
    baseUrl,
    euEndpoint: euEndpoint ?? (hasNewUrl ? false : (earlier?.euEndpoint ?? false)),
    caCertificate,
    updatedAt: requested.now,
  };
}

/** The URL without slashes at its end. Throws INVALID_REQUEST `invalid_url`, or BASE_URL_NOT_ALLOWED. */
async function checkedBaseUrl(text: string, egress: Pick<EgressClient, "check">, signal: AbortSignal): Promise<string> {
  const fault = (detail: string) => invalid({ field: "base_url", code: "invalid_url", detail });
  if (!/^https:\/\//i.test(text)) throw fault("must be an absolute https URL");
  const parsed = parseTarget(text);
  if (!parsed.ok && parsed.fault === "invalid") throw fault(parsed.detail);
  if (!parsed.ok) throw new HoldfastError("BASE_URL_NOT_ALLOWED", `The URL cannot be called: ${parsed.detail}.`);
  const { url } = parsed.target;
  if (url.search !== "" || text.includes("#")) throw fault("must have no query and no fragment");
  try {
    await egress.check(parsed.target, signal);
  } catch (cause) {
    if (!(cause instanceof EgressFailure)) throw cause;
    throw new HoldfastError("BASE_URL_NOT_ALLOWED", "The host of the URL has an address that is not public.", {
      cause,
    });
  }
  return url.href.replace(/\/+$/, "");
}

function checkedAuthorities(pem: string): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    if (blocks.length === 0) throw new Error("no certificate");
    for (const block of blocks) new X509Certificate(block);
  } catch {
    throw invalid({ field: "ca_certificate", code: "invalid_pem", detail: "must be certificates in PEM" });
  }
  return `${blocks.join("\n")}\n`;
}
