import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { EngineFigures } from "../engines/insight-facets.ts";
import { createRate, type Rate } from "./rate.ts";
import type { SampleSource } from "./sample-source.ts";

export interface EngineSourceDeps {
  /** The engine while it runs. */
  readonly engine: () => DrivenInstance | undefined;
  readonly monotonicMs: () => number;
}

const withinMs = 3_000;
/** Looks further apart than this make no rate. */
const longestMs = 60_000;

/**
 * Metrics that the engine tells. An engine that does not answer in time, has no slot left or restarted its counters has no
 * value: never a zero, never a spike.
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

/** Rates and shares out of counters of one epoch. */
function createGrowth() {
  const rates = new Map<string, Rate>();
  const rateOf = (key: string): Rate => {
    const rate = rates.get(key) ?? createRate(longestMs);
    rates.set(key, rate);
    return rate;
  };
  return {
    next({ counters, shares }: EngineFigures, atMs: number): Record<string, number | undefined> {
      const values: Record<string, number | undefined> = {};
      for (const [name, counter] of Object.entries(counters)) {
        const perSecond = rateOf(name).next(counter, atMs);
        values[name] = perSecond && perSecond * (metricOf(name)?.unit === "per minute" ? 60 : 1);
      }
      for (const [name, { part, whole }] of Object.entries(shares)) {
        const [some, all] = [rateOf(`${name} part`).next(part, atMs), rateOf(`${name} whole`).next(whole, atMs)];
        // Nothing was asked for: there is no share of nothing.
        values[name] = some === undefined || all === undefined || all === 0 ? undefined : (some / all) * 100;
      }
      return values;
    },
  };
}
