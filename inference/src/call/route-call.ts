import {
  defaultSilenceMs,
  type Catalog,
  type CatalogProvider,
  hasEuRoute,
  type ModelPrice,
  platformManaged,
  priceOfModel,
  providerNamed,
} from "@holdfast/common/inference/catalog.ts";
import type { Organization } from "../configuration/configuration.ts";
import { type ApiError, apiError } from "../http/api-error.ts";
import type { CheckedCall } from "./check-call.ts";

/** Target of a call: URL, credentials and price. */
export interface Route {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The key in the headers. */
  readonly apiKey: string;
  readonly tls: { readonly ca: string } | undefined;
  /** Time in milliseconds for which the provider may send nothing. */
  readonly silenceMs: number;
  readonly price: Omit<ModelPrice, "name">;
}

const paths = { chat: "/chat/completions", embeddings: "/embeddings" } as const;

/** Selects the target of a call. No name is resolved, no socket opened and nothing logged before that. */
export function routeCall(
  call: CheckedCall,
  organization: Organization | undefined,
  catalog: Catalog,
): Route | ApiError {
  const provider = providerNamed(catalog, call.provider);
  if (call.kind === "embeddings" && provider?.capabilities.embeddings === false)
    return apiError("invalid_model", `${call.provider} does not support embeddings.`, { param: "model" });
  if (call.kind === "chat" && provider?.capabilities.chat === false)
    return apiError("invalid_model", `${call.provider} does not support chat.`, { param: "model" });
  const missing = (why: string) => apiError("provider_not_configured", why, { param: "model" });
  if (call.provider === platformManaged)
    return missing("Models of the platform are called at the host name of their own inference service.");
  if (organization === undefined) return missing("Inference is not configured for the organization.");
  const settings = organization.providers.get(call.provider);
  if (provider === undefined || settings === undefined || !settings.enabled)
    return missing("The organization has not configured this provider, or has disabled it.");
  const base = settings.baseUrl === "" ? provider.url : settings.baseUrl;
  if (base === undefined) return missing("The provider has no base_url.");
  if (organization.euOnly && !hasEuRoute(provider, settings))
    return apiError(
      "eu_residency_unavailable",
      "The organization's calls stay in the EU, and this provider has no route there.",
      {
        param: "model",
      },
    );
  return {
    url: `${base.replace(/\/+$/, "")}${paths[call.kind]}`,
    headers: keyHeader(provider, settings.apiKey),
    apiKey: settings.apiKey,
    tls: settings.tls,
    silenceMs: provider.silenceMs ?? defaultSilenceMs,
    price: priceOfModel(catalog, provider, call.model),
  };
}

function keyHeader({ authHeader = "authorization" }: CatalogProvider, key: string): Record<string, string> {
  return { [authHeader]: authHeader === "authorization" ? `Bearer ${key}` : key };
}
