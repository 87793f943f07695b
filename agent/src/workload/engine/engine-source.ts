import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { DrivenInstance } from "../../engines/engine-driver.ts";
import type { EngineMetrics } from "../../engines/insight-facets.ts";
import { createRate, type Rate } from "../rate.ts";
import type { SampleSource } from "../sample-source.ts";

export interface EngineSourceDeps {
  /** The running engine; undefined without one. */
  readonly engine: () => DrivenInstance | undefined;
  readonly monotonicMs: () => number;
}

const withinMs = 3_000;
/** Readings further apart than this give no rate. */
const maxGapMs = 60_000;

/**
 * Metrics read from the engine. If it does not respond in time, has no free session or restarted its counters, there is
 * no value: never a zero or a spike.
 */
export function createEngineSource({ engine, monotonicMs }: EngineSourceDeps): SampleSource {
  let growth = createGrowth();
  let epoch = "";
  return {
    async read(signal) {
      const target = engine();
      if (target?.driver.metrics === undefined) return { values: {}, absent: {} };
      const limit = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
      const figures = await target.driver.metrics.read(target.instance, limit);
      if (figures.epoch !== epoch) growth = createGrowth();
      epoch = figures.epoch;
      return { values: { ...figures.gauges, ...growth.next(figures, monotonicMs()) }, absent: figures.absent };
    },
  };
}

/** Computes rates and ratios from counters of one epoch. */
function createGrowth() {
  const rates = new Map<string, Rate>();
  const rateOf = (key: string): Rate => {
    const rate = rates.get(key) ?? createRate(maxGapMs);
    rates.set(key, rate);
    return rate;
  };
  return {
    next({ counters, ratios }: EngineMetrics, atMs: number): Record<string, number | undefined> {
      const values: Record<string, number | undefined> = {};
      for (const [name, counter] of Object.entries(counters)) {
        const perSecond = rateOf(name).next(counter, atMs);
        values[name] = perSecond && perSecond * (metricOf(name)?.unit === "per minute" ? 60 : 1);
      }
      for (const [name, { part, total }] of Object.entries(ratios)) {
        const [some, all] = [rateOf(`${name} part`).next(part, atMs), rateOf(`${name} whole`).next(total, atMs)];
        // Without requests there is no ratio.
        values[name] = some === undefined || all === undefined || all === 0 ? undefined : (some / all) * 100;
      }
      return values;
    },
  };
}
