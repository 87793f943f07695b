import type { JsonObject } from "@bufbuild/protobuf";
import { HoldfastError, pointerOf } from "@holdfast/common/errors.ts";
import type { ConfigurationFault, Destination } from "./destinations/destination.ts";
import { carriesLogs, carriesMetrics, type MetricsExportSpec } from "./metrics-export.ts";

const interval = { min: 30, max: 3_600, default: 60 } as const;
export const defaultIntervalSeconds = interval.default;
/** The limits of the interval as JSON Schema. */
export const intervalSchema = { minimum: interval.min, maximum: interval.max };

interface Fault {
  readonly field: string;
  readonly code: string;
  readonly detail: string;
}

/** The faults of the interval. The specification prescribes the text for one that is too short. */
export function intervalFaults(seconds: number | undefined): readonly Fault[] {
  const field = "export_interval_seconds";
  if (seconds === undefined || (seconds >= interval.min && seconds <= interval.max)) return [];
  const detail = seconds < interval.min ? `must be at least ${interval.min}` : `must be at most ${interval.max}`;
  return [{ field, code: "out_of_range", detail }];
}

export function configurationFaults(faults: readonly ConfigurationFault[]): readonly Fault[] {
  return faults.map(({ key, code, detail }) => ({ field: `configuration.${key}`, code, detail }));
}

/** Throws INVALID_REQUEST with all faults, if there are any. */
export function refuse(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const errors = faults.map((fault) => ({ ...fault, pointer: pointerOf(fault.field) }));
  const detail = faults.map((fault) => `${fault.field} ${fault.detail}`).join("; ");
  throw new HoldfastError("INVALID_REQUEST", detail, { errors });
}

/** Throws DATA_TYPE_NOT_SUPPORTED unless the destination supports metrics or logs of the requested data type. */
export function requireSupportedDataType(
  spec: Pick<MetricsExportSpec, "dataType">,
  { type, metrics, logs }: Destination,
): void {
  const fits = (carriesMetrics(spec) && metrics !== undefined) || (carriesLogs(spec) && logs !== undefined);
  if (fits) return;
  const takes = metrics === undefined ? "logs" : "metrics";
  throw new HoldfastError("DATA_TYPE_NOT_SUPPORTED", `${type} supports ${takes} only, not ${spec.dataType}.`);
}

/** The configuration of a request: a Struct is a JSON object in protobuf-es. */
export function configurationOf(given: JsonObject | undefined): Readonly<Record<string, unknown>> {
  return given ?? {};
}
