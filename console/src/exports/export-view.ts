import type { MetricsExportChange } from "@holdfast/sdk/requests.ts";
import type { DestinationType, ExportDataType, MetricsExport } from "@holdfast/sdk/responses.ts";
import { memberOf } from "../member-of.ts";
import type { Tone } from "../tone.ts";

/** A setting of a destination, which the form has a field for. */
export interface DestinationField {
  readonly name: string;
  readonly label: string;
  readonly isSecret?: boolean;
  readonly help?: string;
}

interface Destination {
  readonly title: string;
  /** Data that the destination accepts. */
  readonly data: readonly ExportDataType[];
  readonly fields: readonly DestinationField[];
}

const both: readonly ExportDataType[] = ["both", "metrics", "logs"];
const username = { name: "username", label: "User name" };
const password = { name: "password", label: "Password", isSecret: true };
const bearer = { name: "bearer_token", label: "Bearer token", isSecret: true };
const tenant = { name: "tenant_id", label: "Tenant" };
const apiKey = { name: "api_key", label: "API key", isSecret: true };

/** The types of destinations with their settings. */
export const destinations: Readonly<Record<DestinationType, Destination>> = {
  prometheus_remote_write: {
    title: "Prometheus remote write",
    data: ["metrics"],
    fields: [
      { name: "url", label: "URL", help: "With the receiver's path, such as /api/v1/write" },
      username,
      password,
      bearer,
      tenant,
    ],
  },
  otlp: {
    title: "OpenTelemetry (OTLP)",
    data: both,
    fields: [{ name: "endpoint", label: "Endpoint", help: "Without /v1/metrics" }],
  },
  apm_platform: {
    title: "Datadog",
    data: both,
    fields: [apiKey, { name: "site", label: "Site", help: "datadoghq.com by default" }],
  },
  search_cluster: {
    title: "Elasticsearch or OpenSearch",
    data: both,
    fields: [{ name: "endpoint", label: "Endpoint" }, apiKey, username, password],
  },
  log_aggregator: {
    title: "Loki",
    data: ["logs"],
    fields: [
      { name: "endpoint", label: "Endpoint", help: "Without /loki/api/v1/push" },
      username,
      password,
      bearer,
      tenant,
    ],
  },
  log_saas: {
    title: "Better Stack",
    data: ["logs"],
    fields: [
      { name: "source_token", label: "Source token", isSecret: true },
      { name: "endpoint", label: "Endpoint" },
    ],
  },
  cloud_monitoring: {
    title: "CloudWatch",
    data: both,
    fields: [
      { name: "region", label: "Region" },
      { name: "access_key_id", label: "Access key" },
      { name: "secret_access_key", label: "Secret access key", isSecret: true },
    ],
  },
};

/** The configuration of the form: the settings of this type of destination that are not empty. */
export function configurationOf(type: DestinationType, values: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    destinations[type].fields.flatMap(({ name }) => {
      const value = memberOf(values, name)?.trim() ?? "";
      return value === "" ? [] : [[name, value] as const];
    }),
  );
}

/** The input of the form that changes an export: its name, interval and settings, without secrets. */
export function exportInputOf({
  name,
  export_interval_seconds: interval,
  destination_type: type,
  configuration,
}: MetricsExport): Readonly<Record<string, string>> {
  const settings = destinations[type].fields.map(({ name: field, isSecret }) => {
    const value = memberOf(configuration, field);
    return [field, isSecret !== true && typeof value === "string" ? value : ""] as const;
  });
  return { ...Object.fromEntries(settings), name, interval: String(interval) };
}

/** The change of an export by the edited fields; an optional setting that is emptied is removed. */
export function exportChangeOf(
  type: DestinationType,
  { name, interval, ...edited }: Partial<Readonly<Record<string, string>>>,
): MetricsExportChange {
  const configuration = destinations[type].fields.flatMap(({ name: field }) => {
    const text = memberOf(edited, field)?.trim();
    return text === undefined ? [] : [[field, text === "" ? null : text] as const];
  });
  return {
    ...(name !== undefined && { name }),
    ...(interval !== undefined && { export_interval_seconds: Number(interval) }),
    ...(configuration.length > 0 && { configuration: Object.fromEntries(configuration) }),
  };
}

/** State of an export: "disabled", "failing", "waiting" before its first attempt, or "delivering". */
export function exportState(integration: MetricsExport): { readonly text: string; readonly tone: Tone } {
  const { is_enabled: isEnabled, consecutive_failures: failures, last_attempt_at: attempt } = integration;
  if (!isEnabled) return { text: "disabled", tone: "none" };
  if (failures > 0) return { text: "failing", tone: "bad" };
  return attempt === null ? { text: "waiting", tone: "busy" } : { text: "delivering", tone: "good" };
}

/** Number of items that were not delivered and never will be. */
export function droppedItems({ dropped }: MetricsExport): number {
  const counts = Object.entries(dropped).filter(([unit]) => !unit.endsWith("_segments"));
  return counts.reduce((sum, [, items]) => sum + items, 0);
}
