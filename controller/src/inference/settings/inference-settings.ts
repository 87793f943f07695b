import type { DestinedSecret, SecretBinding } from "#kernel/secrets/destined-secret.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";

/** The inference settings of an organization; the id of the object is the id of the organization. */
export type InferenceSettings = Resource<InferenceSettingsSpec, Readonly<Record<string, never>>>;

export const inferenceSettingsKind = defineKind<InferenceSettings>("inference-settings", {
  deletedWithOrganization: true,
});

export interface InferenceSettingsSpec {
  /** Null before PutInferenceSettings; providers can be configured before. */
  readonly limits: InferenceLimits | null;
  /** Providers by name, which is the prefix of their models. */
  readonly providers: Readonly<Record<string, ConfiguredProvider>>;
}

export interface InferenceLimits {
  readonly monthlyCostLimitCents: number;
  readonly euOnly: boolean;
  readonly alertPct: number;
}

export interface ConfiguredProvider {
  readonly enabled: boolean;
  /** The API key, sealed for this provider of this organization and for its URL. */
  readonly sealedKey: DestinedSecret;
  /** URL of the provider; empty: the URL of the catalog. */
  readonly baseUrl: string;
  readonly euEndpoint: boolean;
  /** CA certificates in PEM; empty: the public certificate authorities. */
  readonly caCertificate: string;
  readonly updatedAt: number;
}

/** Maximum number of providers of an organization. */
export const providersMax = 50;

/** Binding of a provider's key: it can be opened only for this provider, organization and server. */
export function providerKeyBinding(
  organizationId: string,
  provider: string,
  { baseUrl, caCertificate }: Pick<ConfiguredProvider, "baseUrl" | "caCertificate">,
): SecretBinding {
  const place = `${keyOf(inferenceSettingsKind, organizationId)}/${provider}`;
  return { objectKey: place, destination: { base_url: baseUrl, ca_certificate: caCertificate }, legacyLabel: place };
}
