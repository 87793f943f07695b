import type { DestinedSecret } from "#kernel/secrets/destined-secret.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** An integration: what is pushed, where to and how often. How it does is in the history, so that no tick writes here. */
export type MetricsExportObject = Resource<MetricsExportSpec, Record<string, never>>;

export interface MetricsExportSpec {
  /** Null: all services of the organization that have none of the type themselves. */
  readonly serviceId: string | null;
  readonly destinationType: DestinationType;
  readonly dataType: ExportDataType;
  readonly intervalSeconds: number;
  /** Without its secrets. */
  readonly configuration: Configuration;
  /** Sealed for this object and for where it leads: the secrets of the configuration, as JSON. */
  readonly sealedSecrets: DestinedSecret;
  readonly isEnabled: boolean;
  /** Why the platform disabled it. */
  readonly disabledReason: string | null;
  /** What was told before is not exported; milliseconds since 1970. */
  readonly since: number;
}

export const destinationTypes = [
  "apm_platform",
  "prometheus_remote_write",
  "otlp",
  "search_cluster",
  "log_aggregator",
  "log_saas",
  "cloud_monitoring",
] as const;
export type DestinationType = (typeof destinationTypes)[number];

export const exportDataTypes = ["metrics", "logs", "both"] as const;
export type ExportDataType = (typeof exportDataTypes)[number];

/** Values by key, as the API has them. */
export type Configuration = Readonly<Record<string, ConfigurationValue>>;
export type ConfigurationValue = string | number | boolean | Readonly<Record<string, string>>;

export const metricsExportKind = defineKind<MetricsExportObject>("metrics-export", {
  goesWithOrganization: true,
  indexes: [exportsOfPlace, exportsOfService],
  quotas: [{ name: "exports", words: "integrations", limit: 100, error: "EXPORT_LIMIT_REACHED" }],
});

/** Index: the one integration of a type for a service, or for all of an organization. */
export function exportsOfPlace({ metadata, spec }: MetricsExportObject): string {
  return `${metadata.organizationId} ${placeName(spec)}`;
}

/** Index: integrations of a service; global ones are not in it. */
export function exportsOfService({ spec }: MetricsExportObject): string | undefined {
  return spec.serviceId ?? undefined;
}

/** The name that makes an integration the only one of its type in its place. */
export function placeName({ serviceId, destinationType }: Pick<MetricsExportSpec, "serviceId" | "destinationType">) {
  return `${serviceId ?? "*"}/${destinationType}`;
}

export function carriesMetrics({ dataType }: Pick<MetricsExportSpec, "dataType">): boolean {
  return dataType !== "logs";
}

export function carriesLogs({ dataType }: Pick<MetricsExportSpec, "dataType">): boolean {
  return dataType !== "metrics";
}
