import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { FieldFault } from "@holdfast/common/errors.ts";
import type { GetMetricsRequest } from "@holdfast/proto/holdfast/v1/metric_pb.ts";

/** What stretch of time is asked for, in steps of what length. Seconds since 1970. */
export interface MetricWindow {
  /** Inclusive, a multiple of the resolution. */
  readonly fromS: number;
  /** Exclusive. */
  readonly toS: number;
  readonly resolutionS: number;
  readonly resolution: Resolution;
  /** As it was asked for; undefined with a start. */
  readonly period: string | undefined;
}

type Resolution = "1m" | "5m" | "1h";
type Asked = Pick<GetMetricsRequest, "period" | "resolution" | "start" | "end">;

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
const usualPeriod = "1h";

/** The finest first: for how long a stretch each is allowed, and how far back it is kept. */
// biome-ignore format: a table, aligned so that it reads as one
const resolutions: readonly { readonly name: Resolution; readonly stepS: number; readonly longestS: number; readonly keptS: number }[] = [
  { name: "1m", stepS: minuteS,     longestS: dayS,       keptS: 8 * dayS },
  { name: "5m", stepS: 5 * minuteS, longestS: 7 * dayS,   keptS: 8 * dayS },
  { name: "1h", stepS: hourS,       longestS: Number.POSITIVE_INFINITY, keptS: Number.POSITIVE_INFINITY },
];
const oldestS = 400 * dayS;

/** What is wrong with the times that are asked for, or the window that they make. Pure; `now` in milliseconds. */
export function metricWindow(asked: Asked, now: number): MetricWindow | readonly FieldFault[] {
  const nowS = now / 1_000;
  const { startS, endS, faults } = stretchOf(asked, nowS);
  if (faults.length > 0) return faults;
  const allowed = resolutions.filter(({ longestS, keptS }) => endS - startS <= longestS && nowS - startS <= keptS);
  const chosen = asked.resolution === undefined ? allowed[0] : allowed.find(({ name }) => name === asked.resolution);
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
    period: asked.start === undefined ? (asked.period ?? usualPeriod) : undefined,
  };
}

function stretchOf({ period, start, end }: Asked, nowS: number) {
  if (start === undefined) {
    const startS = nowS - (periods.get(period ?? usualPeriod) ?? hourS);
    const faults = end === undefined ? [] : [fault("end", "without_start", "needs start as well")];
    // The step in progress counts.
    return { startS, endS: nowS, faults };
  }
  const startS = timestampMs(start) / 1_000;
  const endS = end === undefined ? nowS : timestampMs(end) / 1_000;
  const faults: FieldFault[] = [];
  if (period !== undefined) faults.push(fault("period", "with_start", "cannot be together with start"));
  if (startS < nowS - oldestS) faults.push(fault("start", "too_old", "is over 400 days ago, which nothing is kept of"));
  if (startS > nowS) faults.push(fault("start", "in_future", "must be before now"));
  else if (endS <= startS) faults.push(fault("end", "before_start", "must be after start"));
  return { startS, endS: Math.min(endS, nowS), faults };
}

function fault(field: string, code: string, detail: string): FieldFault {
  return { field, pointer: null, code, detail };
}
