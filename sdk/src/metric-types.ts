/** Beginning of the interval, a multiple of the resolution, and the metric's figures in it. */
export type MetricPoint = readonly [unixSeconds: number, average: number, minimum: number, maximum: number];
