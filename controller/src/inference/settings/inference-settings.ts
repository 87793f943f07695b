import type { DestinedSecret, SecretBinding } from "#kernel/secrets/destined-secret.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";

/** How an organization uses inference: one object, its id is that of the organization. */
export type InferenceSettings = Resource<InferenceSettingsSpec, Readonly<Record<string, never>>>;

export const inferenceSettingsKind = defineKind<InferenceSettings>("inference-settings", {
  goesWithOrganization: true,
});

export interface InferenceSettingsSpec {
  /** Null until the settings were put: providers may be configured before. */
  readonly limits: InferenceLimits | null;
  /** By the prefix of their models. */
  readonly providers: Readonly<Record<string, ConfiguredProvider>>;
}

export interface InferenceLimits {
  readonly monthlyCostLimitCents: number;
  readonly euOnly: boolean;
  readonly alertPct: number;
}

export interface ConfiguredProvider {
  readonly enabled: boolean;
  /** Sealed for this provider of this organization, and for where it is called. */
  readonly sealedKey: DestinedSecret;
  /** Empty: the catalog's URL. */
  readonly baseUrl: string;
  readonly euEndpoint: boolean;
  /** PEM; empty: the public authorities. */
  readonly caCertificate: string;
  readonly updatedAt: number;
}

/** Providers of one organization. */
export const providersMax = 50;

/** A provider's key opens for this provider of this organization, and for this server. */
export function providerKeyBinding(
  organizationId: string,
  provider: string,
  { baseUrl, caCertificate }: Pick<ConfiguredProvider, "baseUrl" | "caCertificate">,
): SecretBinding {
  const place = `${keyOf(inferenceSettingsKind, organizationId)}/${provider}`;
  return { place, destination: { base_url: baseUrl, ca_certificate: caCertificate }, earlier: place };
}
