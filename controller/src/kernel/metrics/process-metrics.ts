import { collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** A figure that is read when it is asked for. */
export interface ProcessGauge {
  /** Without the prefix `holdfast_`; a unit at its end. */
  readonly name: string;
  readonly help: string;
  /** One value, or one for each value of a label. */
  readonly read: () => number | { readonly label: string; readonly values: Iterable<readonly [string, number]> };
}

/** Times of one kind of work, by its name and outcome. */
export interface WorkTimes {
  observe(what: string, outcome: string, seconds: number): void;
}

/** Metrics of a process: one registry for all of its groups. */
export interface ProcessMetrics {
  add(gauge: ProcessGauge): void;
  /** `name` ends with `_seconds`; `label` names the kind of work, such as the method. */
  times(name: string, help: string, label: string): WorkTimes;
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

/** From a look-up in memory to a wait for a lock. */
const bucketsS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];

export function createProcessMetrics(): ProcessMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Gauges that are named as counters; each has its figures by type as well.
  for (const name of ["handles", "requests", "resources"]) registry.removeSingleMetric(`nodejs_active_${name}_total`);
  return {
    add({ name, help, read }) {
      // Known before it is made: a gauge has its labels for good.
      const first = read();
      const labelNames = typeof first === "number" ? [] : [first.label];
      const gauge: Gauge = new Gauge({
        name: `holdfast_${name}`,
        help,
        labelNames,
        registers: [registry],
        collect() {
          const told = read();
          gauge.reset();
          if (typeof told === "number") gauge.set(told);
          else for (const [label, value] of told.values) gauge.set({ [told.label]: label }, value);
        },
      });
    },
    times(name, help, label) {
      const labelNames = [label, "outcome"];
      const registers = [registry];
      const histogram = new Histogram({ name: `holdfast_${name}`, help, labelNames, buckets: bucketsS, registers });
      return { observe: (what, outcome, seconds) => histogram.observe({ [label]: what, outcome }, seconds) };
    },
    text: () => registry.metrics(),
  };
}

/** Runs the work, and records its duration and outcome: `ok`, or the name that `outcomeOf` gives its error. */
export async function timed<T>(
  times: WorkTimes,
  what: string,
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
    times.observe(what, outcome, (performance.now() - began) / 1_000);
  }
}
