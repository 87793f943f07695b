/** How far back from now. */
export type MetricPeriod = "15m" | "1h" | "6h" | "24h" | "7d";

/** The time that one point stands for. */
export type MetricResolution = "1m" | "5m" | "1h";

/** Which metrics, of when. */
export interface MetricQuery {
  /** Names out of the catalogue. */
  readonly metric: readonly string[];
  /** 1h when neither it nor start is given. */
  readonly period?: MetricPeriod;
  /** The finest that is allowed when omitted: 1m for up to 24 hours, 5m for up to 7 days, both within the last 8 days. */
  readonly resolution?: MetricResolution;
  /** Only of these nodes. */
  readonly node_id?: readonly string[];
  /** Instead of a period: RFC 3339, at most 400 days ago. */
  readonly start?: string;
  /** With start; now when omitted. */
  readonly end?: string;
}

export interface Metrics {
  /** As it was asked for; null with start. */
  readonly period: string | null;
  readonly resolution: MetricResolution;
  /** One for each metric and node that has it, in the order asked. */
  readonly series: readonly MetricSeries[];
  /** Metrics that were asked for and that a node cannot tell. */
  readonly absent: readonly {
    readonly metric: string;
    readonly node_id: string;
    readonly reason: string;
  }[];
}

export interface MetricSeries {
  readonly metric: string;
  readonly unit: string;
  readonly node_id: string;
  readonly role: "primary" | "replica";
  /** Of each time that has samples, oldest first: a gap is never told as zero. The last one may still be in progress. */
  readonly points: readonly MetricPoint[];
}

/** Where the time begins, a multiple of the resolution, and what the metric was in it. */
export type MetricPoint = readonly [unixSeconds: number, average: number, minimum: number, maximum: number];
