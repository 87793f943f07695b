/** One metric of machines or engines. */
export interface Metric {
  /** Number of the metric in samples, from 1 on. Stored samples refer to it, so a number is never reused. */
  readonly number: number;
  readonly name: string;
  readonly unit: MetricUnit;
  /** Values of database_type that have the metric; empty means all, and hosted apps. */
  readonly engines: readonly string[];
  readonly kind: MetricKind;
  readonly description: string;
  /** The component that measures it; null if this version does not collect it. */
  readonly source: MetricSource | null;
  /** The nodes that can have it; absent means all. */
  readonly nodes?: "primary" | "replicas";
}

export type MetricUnit =
  | "percent"
  | "per second"
  | "per minute"
  | "bytes per second"
  | "bytes"
  | "seconds"
  | "count"
  | "level";

/**
 * A gauge is the value at the time of a sample; a rate is the change since the previous sample, divided by the time
 * between them.
 */
export type MetricKind = "gauge" | "rate";

/** The machine of the engine, the engine itself, its queues, or the agent's checks. */
export type MetricSource = "machine" | "engine" | "queues" | "agent";
