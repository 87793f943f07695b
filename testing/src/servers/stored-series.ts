import type { StoredValue } from "../platform/stored-samples.ts";

/** A series of remote write at a receiver, with its samples in the order of time. */
export interface StoredSeries {
  /** Labels of the series, with the name as `__name__`. */
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly number[];
  /** Milliseconds since 1970. */
  readonly timestamps: readonly number[];
}

/** One value for each sample; `node` is the label with the node. */
export function valuesOfSeries(series: readonly StoredSeries[], node = "node_id"): StoredValue[] {
  return series.flatMap(({ metric, values, timestamps }) =>
    timestamps.map((timeMs, index) => ({
      name: (metric["__name__"] ?? "").replace(/^platform[._]/, ""),
      value: values[index] ?? Number.NaN,
      timeMs,
      nodeId: metric[node] ?? "",
    })),
  );
}
