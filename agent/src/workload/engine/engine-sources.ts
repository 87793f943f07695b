import { timestampMs } from "@bufbuild/protobuf/wkt";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { DrivenInstance } from "../../engines/engine-driver.ts";
import type { EngineMetrics } from "../../engines/insight-facets.ts";
import { createRate, type Rate } from "../rate.ts";
import type { SampleSource } from "../sample-source.ts";

export interface EngineSourceDeps {
  /** The running engine; undefined without one. */
  readonly engine: () => DrivenInstance | undefined;
  readonly monotonicMs: () => number;
}

const timeoutMs = 3_000;
/** Max interval between two readings for a rate. */
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
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
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
        const [some, all] = [rateOf(`${name} part`).next(part, atMs), rateOf(`${name} total`).next(total, atMs)];
        // Without requests there is no ratio.
        values[name] = some === undefined || all === undefined || all === 0 ? undefined : (some / all) * 100;
      }
      return values;
    },
  };
}

/** Lag of the engine's log archive; no values without an archive. */
export function createArchiveSource(archive: () => ArchiveObservation | undefined, now: () => number): SampleSource {
  return {
    async read() {
      const observation = archive();
      if (observation?.durableTime === undefined) return { values: {}, absent: {} };
      const ageMs = now() - timestampMs(observation.durableTime);
      const values = {
        // The clock may have been set back.
        restorable_age_seconds: Math.max(0, ageMs) / 1_000,
        archive_waiting_bytes: Number(observation.waitingBytes),
      };
      return { values, absent: {} };
    },
  };
}

/** Totals of the engine's queues; no values for an engine without queues. */
export function createQueueSource(engine: () => DrivenInstance | undefined): SampleSource {
  return {
    async read(signal) {
      const target = engine();
      if (target?.driver.queues === undefined) return { values: {}, absent: {} };
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      return { values: await target.driver.queues.sample(target.instance, limit), absent: {} };
    },
  };
}
