import type { MetricSeries } from "@holdfast/sdk/responses.ts";

/** The columns of a chart: times in seconds, then for each node its average, maximum and minimum. */
export interface ChartColumns {
  readonly times: number[];
  readonly values: (number | null)[][];
  readonly nodes: readonly string[];
}

const stepS: ReadonlyMap<string, number> = new Map([
  ["1m", 60],
  ["5m", 300],
  ["1h", 3_600],
]);

/**
 * Aligns the series of one metric. An interval without a sample gets a null, so that the chart has a gap there and no
 * line.
 */
export function columnsOf(series: readonly MetricSeries[], resolution: string): ChartColumns {
  const step = stepS.get(resolution) ?? 60;
  const present = series.filter(({ points }) => points.length > 0);
  const all = present.flatMap(({ points }) => points.map(([time]) => time));
  const [first, last] = [Math.min(...all), Math.max(...all)];
  const times: number[] = [];
  if (all.length > 0) for (let time = first; time <= last; time += step) times.push(time);
  const indexes = new Map(times.map((time, index) => [time, index]));
  const values = present.flatMap(({ points }) => {
    const [average, maximum, minimum] = [0, 1, 2].map(() => times.map((): number | null => null));
    for (const [time, ...point] of points) {
      const index = indexes.get(time);
      if (index === undefined) continue;
      if (average) average[index] = point[0];
      if (minimum) minimum[index] = point[1];
      if (maximum) maximum[index] = point[2];
    }
    return [average ?? [], maximum ?? [], minimum ?? []];
  });
  return { times, values, nodes: labelsOf(present) };
}

/** Labels of nodes: "primary", "replica", "replica 2". */
function labelsOf(series: readonly Pick<MetricSeries, "role">[]): readonly string[] {
  return series.map(({ role }, index) => {
    const number = series.slice(0, index + 1).filter((each) => each.role === role).length;
    return number === 1 ? role : `${role} ${number}`;
  });
}

/** The newest average of the first node that has one; undefined without samples. */
export function newestOf(series: readonly MetricSeries[]): number | undefined {
  return series.find(({ points }) => points.length > 0)?.points.at(-1)?.[1];
}
