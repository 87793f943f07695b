import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  DestinationType,
  ExportDataType,
  type MetricsExportSchema,
} from "@holdfast/proto/holdfast/v1/metrics_export_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { openConfiguration, maskedConfiguration } from "./configuration/secrets.ts";
import { destinationOf } from "./destinations/destinations.ts";
import { backlogSeconds } from "./export-plan.ts";
import type { RunState } from "./export-run-state.ts";
import {
  carriesLogs,
  carriesMetrics,
  type DestinationType as TypeName,
  destinationTypes,
  type ExportDataType as DataTypeName,
  exportDataTypes,
  type MetricsExportObject,
} from "./metrics-export.ts";

/** The proto's enumeration has the order of the names. */
export function destinationTypeName(type: DestinationType): TypeName {
  return nameAt(destinationTypes, type);
}

export function dataTypeName(type: ExportDataType): DataTypeName {
  return nameAt(exportDataTypes, type);
}

function nameAt<T>(names: readonly T[], number: number): T {
  const name = names[number - 1];
  if (name === undefined) throw new Error(`no name for ${number}`);
  return name;
}

/** The API message of an integration, with masked secrets. */
export function metricsExportMessage(
  { metadata, spec }: MetricsExportObject,
  state: RunState,
  { sealer, nowMs }: { readonly sealer: Sealer; readonly nowMs: number },
): Omit<MessageInitShape<typeof MetricsExportSchema>, "$typeName"> {
  const destination = destinationOf(spec.destinationType);
  const configuration = openConfiguration({ metadata, spec }, destination, sealer);
  const at = (timeMs: number | null) => (timeMs === null ? undefined : timestampFromMs(timeMs));
  const lastExportAt = at(state.lastExportMs);
  const lastAttemptAt = at(state.lastAttemptMs);
  return {
    id: metadata.id,
    ...(spec.serviceId !== null && { serviceId: spec.serviceId }),
    name: metadata.name,
    destinationType: (destinationTypes.indexOf(spec.destinationType) + 1) as DestinationType,
    dataType: (exportDataTypes.indexOf(spec.dataType) + 1) as ExportDataType,
    exportIntervalSeconds: spec.intervalSeconds,
    configuration: maskedConfiguration(destination, configuration) as JsonObject,
    isEnabled: spec.isEnabled,
    consecutiveFailures: state.consecutiveFailures,
    ...(state.lastError !== null && { lastExportError: state.lastError }),
    ...(lastExportAt !== undefined && { lastExportAt }),
    ...(lastAttemptAt !== undefined && { lastAttemptAt }),
    backlogSeconds: backlogSeconds(state, nowMs),
    exported: { samples: BigInt(state.samples), logEntries: BigInt(state.logEntries) },
    dropped: {
      tooOld: BigInt(state.tooOld),
      refused: BigInt(state.refused),
      // oxlint-disable-next-line holdfast/names -- a field of the proto
      gone: BigInt(state.expired),
      // oxlint-disable-next-line holdfast/names -- a field of the proto
      goneLogSegments: BigInt(state.expiredSegments),
    },
    ...(spec.disabledReason !== null && { disabledReason: spec.disabledReason }),
    warnings: warningsOf({ spec }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  };
}

function warningsOf({ spec }: Pick<MetricsExportObject, "spec">): string[] {
  const destination = destinationOf(spec.destinationType);
  const { configuration } = spec;
  const skipped = (data: string) => `${data}_skipped: ${spec.destinationType} does not support them`;
  const plain = Object.values(configuration).some((value) => typeof value === "string" && /^http:/i.test(value));
  return [
    ...(carriesMetrics(spec) && destination.metrics === undefined ? [skipped("metrics")] : []),
    ...(carriesLogs(spec) && destination.logs === undefined ? [skipped("logs")] : []),
    ...(plain ? ["plain_http: data sent over http:// can be read in transit"] : []),
    ...(configuration["tls_skip_verify"] === true
      ? ["tls_skip_verify: without verification another server can impersonate the destination"]
      : []),
    ...(destination.warnings?.(configuration) ?? []),
  ];
}
