import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

/** A gauge that is read at each scrape, or a counter, whose name ends with `_total`. */
export interface ProcessGauge {
  /** Name without the prefix `holdfast_`; it ends with the unit. */
  readonly name: string;
  readonly help: string;
  /** One value, or one for each value of a label. */
  readonly read: () => number | { readonly label: string; readonly values: Iterable<readonly [string, number]> };
}

/** Durations of one type of work, by name and outcome. */
export interface WorkTimes {
  observe(workName: string, outcome: string, seconds: number): void;
}

/** Metrics of a process: one Prometheus registry for all groups. */
export interface ProcessMetrics {
  add(gauge: ProcessGauge): void;
  /** `name` ends with `_seconds`; `label` is the label of the work's name, such as "method". */
  times(name: string, help: string, label: string): WorkTimes;
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

/** Buckets from a look-up in memory to a wait for a lock. */
const bucketsS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];

export function createProcessMetrics(): ProcessMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // prom-client gives these gauges names of counters; the same numbers also exist by type.
  for (const name of ["handles", "requests", "resources"]) registry.removeSingleMetric(`nodejs_active_${name}_total`);
  return {
    add({ name, help, read }) {
      // Read before the metric exists: its label names are fixed.
      const first = read();
      const labelNames = typeof first === "number" ? [] : [first.label];
      const Type = name.endsWith("_total") ? Counter : Gauge;
      const metric: Counter | Gauge = new Type({
        name: `holdfast_${name}`,
        help,
        labelNames,
        registers: [registry],
        collect() {
          const reading = read();
          metric.reset();
          if (typeof reading === "number") metric.inc(reading);
          else for (const [label, value] of reading.values) metric.inc({ [reading.label]: label }, value);
        },
      });
    },
    times(name, help, label) {
      const labelNames = [label, "outcome"];
      const registers = [registry];
      const histogram = new Histogram({ name: `holdfast_${name}`, help, labelNames, buckets: bucketsS, registers });
      return { observe: (workName, outcome, seconds) => histogram.observe({ [label]: workName, outcome }, seconds) };
    },
    text: () => registry.metrics(),
  };
}

/** Runs the work and records its duration and outcome: `ok`, or the name that `outcomeOf` returns for its error. */
export async function timed<T>(
  times: WorkTimes,
  workName: string,
  work: () => Promise<T>,
  outcomeOf: (error: unknown) => string = () => "failed",
): Promise<T> {
  const began = performance.now();
  let outcome = "ok";
  try {
    return await work();
  } catch (error) {
    outcome = outcomeOf(error);
    throw error;
  } finally {
    times.observe(workName, outcome, (performance.now() - began) / 1_000);
  }
}
