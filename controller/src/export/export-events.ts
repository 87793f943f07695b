import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { MetricsExportObject } from "./metrics-export.ts";

const exportData = {
  integration_id: { type: "uuid", meaning: "id of the integration" },
  integration_name: { type: "string", meaning: "name of the integration" },
  destination_type: { type: "string", meaning: "type of the destination" },
  service_id: { type: "uuid", meaning: "exported service; null for all services of the organization", nullable: true },
} as const satisfies EventDefinition["data"];

const failureData = {
  ...exportData,
  consecutive_failures: { type: "number", meaning: "number of failed runs since the last successful one" },
  last_export_error: { type: "string", meaning: "error of the last run: a status and a short message" },
} as const satisfies EventDefinition["data"];

const example = {
  integration_id: "0198f2a4-5b1e-7d20-8c7f-3a9d4e6b1c02",
  integration_name: "grafana",
  destination_type: "prometheus_remote_write",
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
};
const failure = {
  consecutive_failures: 10,
  last_export_error: "HTTP 401: the destination does not accept the credential",
};

/** The events of exports of metrics and logs. */
export const exportEventDefinitions = {
  "export.failing": {
    when: "an export failed ten times in a row",
    data: failureData,
    example: { ...example, ...failure },
    optIn: true,
  },
  "export.recovered": {
    when: "an export that was failing works again",
    data: exportData,
    example,
    optIn: true,
  },
  "export.disabled": {
    when: "an export failed for seven days and was disabled",
    data: failureData,
    example: { ...example, ...failure, consecutive_failures: 2_016 },
    optIn: true,
  },
} as const satisfies Readonly<Record<`export.${string}`, EventDefinition>>;

export function exportEvent(
  type: keyof typeof exportEventDefinitions,
  { metadata, spec }: MetricsExportObject,
  failed?: { readonly consecutiveFailures: number; readonly lastError: string | null },
): NewEvent {
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: "metrics-export",
    objectId: metadata.id,
    data: {
      integration_id: metadata.id,
      integration_name: metadata.name,
      destination_type: spec.destinationType,
      service_id: spec.serviceId,
      ...(failed !== undefined && {
        consecutive_failures: failed.consecutiveFailures,
        last_export_error: failed.lastError ?? "",
      }),
    },
  };
}
