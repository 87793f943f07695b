/** A source of metrics. A source that hangs delays no other. */
export interface SampleSource {
  /** Current values by metric name. A metric in neither `values` nor `absent` has no value this time. */
  read(signal: AbortSignal): Promise<Reading>;
}

export interface Reading {
  readonly values: Readonly<Record<string, number | undefined>>;
  /** Metrics that this source cannot measure on this machine, each with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

/** Values of all metrics at one time, as they are stored and sent. */
export interface Sample {
  /** Milliseconds since 1970: a multiple of the interval. */
  readonly timeMs: number;
  /** Slots of the metrics in the metric catalog. */
  readonly slots: readonly number[];
  /** Values by slot of the metric catalog. */
  readonly values: readonly number[];
}
