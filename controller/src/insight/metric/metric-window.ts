import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { FieldFault } from "@holdfast/common/errors.ts";
import type { GetMetricsRequest } from "@holdfast/proto/holdfast/v1/metric_pb.ts";

/** The requested time range and resolution, in seconds since 1970. */
export interface MetricWindow {
  /** Inclusive, a multiple of the resolution. */
  readonly fromS: number;
  /** Exclusive. */
  readonly toS: number;
  readonly resolutionS: number;
  readonly resolution: Resolution;
  /** The requested period, such as `6h`; undefined if the request has a start. */
  readonly period: string | undefined;
}

type Resolution = "1m" | "5m" | "1h";
type WindowRequest = Pick<GetMetricsRequest, "period" | "resolution" | "start" | "end">;

const minuteS = 60;
const hourS = 60 * minuteS;
const dayS = 24 * hourS;

const periods: ReadonlyMap<string, number> = new Map(
  Object.entries<number>({
    "15m": 15 * minuteS,
    "1h": hourS,
    "6h": 6 * hourS,
    "24h": dayS,
    "7d": 7 * dayS,
  }),
);
const defaultPeriod = "1h";

/** Resolutions, finest first, with the maximum time range and the retention of each. */
// biome-ignore format: a table, aligned so that it reads as one
const resolutions: readonly { readonly name: Resolution; readonly stepS: number; readonly spanMaxS: number; readonly retainedS: number }[] = [
  { name: "1m", stepS: minuteS,     spanMaxS: dayS,       retainedS: 8 * dayS },
  { name: "5m", stepS: 5 * minuteS, spanMaxS: 7 * dayS,   retainedS: 8 * dayS },
  { name: "1h", stepS: hourS,       spanMaxS: Number.POSITIVE_INFINITY, retainedS: Number.POSITIVE_INFINITY },
];
const oldestS = 400 * dayS;

/** The range of a request, or its errors. `now` is in milliseconds since 1970. */
export function metricWindow(request: WindowRequest, now: number): MetricWindow | readonly FieldFault[] {
  const nowS = now / 1_000;
  const { startS, endS, faults } = intervalOf(request, nowS);
  if (faults.length > 0) return faults;
  const allowed = resolutions.filter(
    ({ spanMaxS, retainedS }) => endS - startS <= spanMaxS && nowS - startS <= retainedS,
  );
  const chosen =
    request.resolution === undefined ? allowed[0] : allowed.find(({ name }) => name === request.resolution);
  if (chosen === undefined) {
    const names = allowed.map(({ name }) => name).join(", ");
    return [fault("resolution", "too_fine", `is too fine for this time: allowed is ${names}`)];
  }
  const { name: resolution, stepS: resolutionS } = chosen;
  return {
    fromS: Math.floor(startS / resolutionS) * resolutionS,
    toS: Math.ceil(endS / resolutionS) * resolutionS,
    resolutionS,
    resolution,
    period: request.start === undefined ? (request.period ?? defaultPeriod) : undefined,
  };
}

function intervalOf({ period, start, end }: WindowRequest, nowS: number) {
  if (start === undefined) {
    const startS = nowS - (periods.get(period ?? defaultPeriod) ?? hourS);
    const faults = end === undefined ? [] : [fault("end", "without_start", "needs start as well")];
    // The current step is included.
    return { startS, endS: nowS, faults };
  }
  const startS = timestampMs(start) / 1_000;
  const endS = end === undefined ? nowS : timestampMs(end) / 1_000;
  const faults: FieldFault[] = [];
  if (period !== undefined) faults.push(fault("period", "with_start", "must not be combined with start"));
  if (startS < nowS - oldestS)
    faults.push(fault("start", "too_old", "is over 400 days ago, before the retention of samples"));
  if (startS > nowS) faults.push(fault("start", "in_future", "must be before now"));
  else if (endS <= startS) faults.push(fault("end", "before_start", "must be after start"));
  return { startS, endS: Math.min(endS, nowS), faults };
}

function fault(field: string, code: string, detail: string): FieldFault {
  return { field, pointer: null, code, detail };
}
