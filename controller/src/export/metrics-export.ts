import type { DestinedSecret } from "#kernel/secrets/destined-secret.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/**
 * An integration: type of data, destination and interval. Its run state is in the history, so ticks do not write to
 * etcd.
 */
export type MetricsExportObject = Resource<MetricsExportSpec, Record<string, never>>;

export interface MetricsExportSpec {
  /** Null: all services of the organization without an integration of the same type. */
  readonly serviceId: string | null;
  readonly destinationType: DestinationType;
  readonly dataType: ExportDataType;
  readonly intervalSeconds: number;
  /** The configuration without its secrets. */
  readonly configuration: Configuration;
  /** The secrets of the configuration as JSON, sealed for this object and its target. */
  readonly sealedSecrets: DestinedSecret;
  readonly isEnabled: boolean;
  /** Reason for which the platform disabled it; null when it did not. */
  readonly disabledReason: string | null;
  /** Start of the export: older items are not exported; milliseconds since 1970. */
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

/** Values by key, as in the API. */
export type Configuration = Readonly<Record<string, ConfigurationValue>>;
export type ConfigurationValue = string | number | boolean | Readonly<Record<string, string>>;

export const metricsExportKind = defineKind<MetricsExportObject>("metrics-export", {
  deletedWithOrganization: true,
  indexes: [exportsOfScope, exportsOfService],
  quotas: [{ name: "exports", label: "integrations", limit: 100, error: "EXPORT_LIMIT_REACHED" }],
});

/** Index: the integration of a type for a service, or for all services of an organization. */
export function exportsOfScope({ metadata, spec }: MetricsExportObject): string {
  return `${metadata.organizationId} ${scopeName(spec)}`;
}

/** Index: the integrations of a service; global ones are not included. */
export function exportsOfService({ spec }: MetricsExportObject): string | undefined {
  return spec.serviceId ?? undefined;
}

/** Unique name of an integration in its organization: `<service id or *>/<destination type>`. */
export function scopeName({ serviceId, destinationType }: Pick<MetricsExportSpec, "serviceId" | "destinationType">) {
  return `${serviceId ?? "*"}/${destinationType}`;
}

export function carriesMetrics({ dataType }: Pick<MetricsExportSpec, "dataType">): boolean {
  return dataType !== "logs";
}

export function carriesLogs({ dataType }: Pick<MetricsExportSpec, "dataType">): boolean {
  return dataType !== "metrics";
}
