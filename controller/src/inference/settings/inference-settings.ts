import type { Sealer } from "#kernel/secrets/sealer.ts";
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
  /** Sealed for this provider of this organization. */
  readonly sealedKey: string;
  /** Empty: the catalog's URL. */
  readonly baseUrl: string;
  readonly euEndpoint: boolean;
  /** PEM; empty: the public authorities. */
  readonly caCertificate: string;
  readonly updatedAt: number;
}

/** Providers of one organization. */
export const providersMax = 50;

/** What the key of a provider is sealed with: it does not open as another one's. */
function sealedFor(organizationId: string, provider: string): string {
  return `${keyOf(inferenceSettingsKind, organizationId)}/${provider}`;
}

export function sealProviderKey(sealer: Sealer, organizationId: string, provider: string, key: string): string {
  return sealer.seal(key, sealedFor(organizationId, provider));
}

export function openProviderKey(sealer: Sealer, organizationId: string, provider: string, sealed: string): string {
  return sealer.open(sealed, sealedFor(organizationId, provider));
}
