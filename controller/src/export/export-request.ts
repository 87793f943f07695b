import type { JsonObject } from "@bufbuild/protobuf";
import { HoldfastError, pointerOf } from "@holdfast/common/errors.ts";
import type { ConfigurationFault, Destination } from "./destinations/destination.ts";
import { carriesLogs, carriesMetrics, type MetricsExportSpec } from "./metrics-export.ts";

const interval = { least: 30, most: 3_600, usual: 60 } as const;
export const usualIntervalSeconds = interval.usual;
/** The limits as JSON Schema has them. */
export const intervalForm = { minimum: interval.least, maximum: interval.most };

interface Fault {
  readonly field: string;
  readonly code: string;
  readonly detail: string;
}

/** What is wrong with the interval; the words of the first are the specification's. */
export function intervalFaults(seconds: number | undefined): readonly Fault[] {
  const field = "export_interval_seconds";
  if (seconds === undefined || (seconds >= interval.least && seconds <= interval.most)) return [];
  const detail = seconds < interval.least ? `must be at least ${interval.least}` : `must be at most ${interval.most}`;
  return [{ field, code: "out_of_range", detail }];
}

export function configurationFaults(faults: readonly ConfigurationFault[]): readonly Fault[] {
  return faults.map(({ key, code, detail }) => ({ field: `configuration.${key}`, code, detail }));
}

/** Throws INVALID_REQUEST with all of them, if there are any. */
export function refuse(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const errors = faults.map((fault) => ({ ...fault, pointer: pointerOf(fault.field) }));
  const detail = faults.map((fault) => `${fault.field} ${fault.detail}`).join("; ");
  throw new HoldfastError("INVALID_REQUEST", detail, { errors });
}

/** Throws DATA_TYPE_NOT_SUPPORTED where nothing of the data type is for the destination. */
export function requireFit(spec: Pick<MetricsExportSpec, "dataType">, { type, metrics, logs }: Destination): void {
  const fits = (carriesMetrics(spec) && metrics !== undefined) || (carriesLogs(spec) && logs !== undefined);
  if (fits) return;
  const takes = metrics === undefined ? "logs" : "metrics";
  throw new HoldfastError("DATA_TYPE_NOT_SUPPORTED", `${type} takes ${takes} only, not ${spec.dataType}.`);
}

/** A Struct, as protobuf-es shows it. */
export function configurationOf(given: JsonObject | undefined): Readonly<Record<string, unknown>> {
  return given ?? {};
}
