import type { PlatformEvent } from "@holdfast/sdk/event-types.ts";
import type { AlertRule, MetricSeries } from "@holdfast/sdk/responses.ts";
import { eventTitle } from "../events/event-view.ts";
import { metricText } from "../format.ts";

/** A period of charts, in seconds since 1970. */
export interface ChartRange {
  readonly from: number;
  readonly to: number;
}

/** An event that explains a change of a chart; its number is in the chart and in the list below the charts. */
export interface ChartMarker {
  readonly number: number;
  readonly time: number;
  readonly title: string;
}

/** A line of an alert rule. */
export interface ChartThreshold {
  readonly value: number;
  readonly text: string;
}

/** Types of events that change what a service does. */
const markerTypes =
  /^(service\.(running|stopped|error|restored|failed_over|resized|writes_blocked|maintenance_(started|completed|failed))|node\.(added|removed|unhealthy|rewound)|backup\.(completed|failed)|alert\.(fired|resolved))$/;

const maxMarkers = 20;

/** Markers of a period: its newest 20 events, numbered from the oldest. */
export function markersOf(
  events: readonly Pick<PlatformEvent, "event_type" | "timestamp">[],
  { from, to }: ChartRange,
): readonly ChartMarker[] {
  return events
    .filter(({ event_type: type }) => markerTypes.test(type))
    .map(({ event_type: type, timestamp }) => ({ time: Date.parse(timestamp) / 1_000, title: eventTitle(type) }))
    .filter(({ time }) => time >= from && time <= to)
    .sort((one, other) => one.time - other.time)
    .slice(-maxMarkers)
    .map((marker, index) => ({ number: index + 1, ...marker }));
}

/** Lines of the alert rules of a metric that are not paused. */
export function thresholdsOf(
  rules: readonly Pick<AlertRule, "metric" | "condition" | "threshold" | "name" | "paused">[],
  metric: string,
  unit: string,
): readonly ChartThreshold[] {
  return rules
    .filter((rule) => rule.metric === metric && !rule.paused)
    .map(({ name, condition, threshold }) => ({
      value: threshold,
      text: `${name}: ${condition === "gt" ? "above" : "below"} ${metricText(threshold, unit)}`,
    }));
}

const periodS: ReadonlyMap<string, number> = new Map([
  ["15m", 900],
  ["1h", 3_600],
  ["6h", 21_600],
  ["24h", 86_400],
  ["7d", 604_800],
]);

/** The range of a period that ends now. */
export function rangeOfPeriod(period: string, now: number): ChartRange {
  const to = Math.floor(now / 1_000);
  return { from: to - (periodS.get(period) ?? 3_600), to };
}

/** Shortest range of a zoom: samples are a minute apart. */
const minRangeS = 300;

/** The zoomed range in the address; undefined without a valid one. */
export function zoomOf(query: URLSearchParams): ChartRange | undefined {
  const [from, to] = ["from", "to"].map((name) => Date.parse(query.get(name) ?? "") / 1_000);
  return from === undefined || to === undefined || !(to > from) ? undefined : { from, to };
}

/** A selected range, made at least five minutes long. */
export function widened({ from, to }: ChartRange): ChartRange {
  const missing = Math.max(0, minRangeS - (to - from)) / 2;
  return { from: Math.floor(from - missing), to: Math.ceil(to + missing) };
}

/** The middle half of a range. */
export function zoomedIn({ from, to }: ChartRange): ChartRange {
  const quarter = (to - from) / 4;
  return widened({ from: from + quarter, to: to - quarter });
}

/** The range before (-1) or after (1) another one, by half of its length, and not after `now`. */
export function shifted({ from, to }: ChartRange, direction: -1 | 1, now: number): ChartRange {
  const by = Math.min(((to - from) / 2) * direction, now / 1_000 - to);
  return { from: Math.floor(from + by), to: Math.floor(to + by) };
}

/** A row of the table behind a chart. */
export interface ChartRow {
  readonly time: number;
  readonly node: number;
  readonly average: string;
  readonly minimum: string;
  readonly maximum: string;
}

const maxRows = 120;

/** The newest points of all nodes as texts, newest first. */
export function rowsOf(series: readonly MetricSeries[]): readonly ChartRow[] {
  return series
    .filter(({ points }) => points.length > 0)
    .flatMap(({ points, unit }, node) =>
      points.map(([time, average, minimum, maximum]) => ({
        time,
        node,
        average: metricText(average, unit),
        minimum: metricText(minimum, unit),
        maximum: metricText(maximum, unit),
      })),
    )
    .sort((one, other) => other.time - one.time || one.node - other.node)
    .slice(0, maxRows);
}
