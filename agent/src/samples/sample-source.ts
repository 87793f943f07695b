/** A source of metrics. A source that hangs holds no other up. */
export interface SampleSource {
  /** Figures of now, by the names of their metrics. A metric that is neither told nor absent has no value this time. */
  read(signal: AbortSignal): Promise<Reading>;
}

export interface Reading {
  readonly values: Readonly<Record<string, number | undefined>>;
  /** Metrics that this source can never tell here, each with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

/** All figures of one moment, as they are kept and sent. */
export interface Sample {
  /** Milliseconds since 1970: a multiple of the interval. */
  readonly timeMs: number;
  /** Places in the catalog of metrics. */
  readonly slots: readonly number[];
  /** One for each slot. */
  readonly values: readonly number[];
}
