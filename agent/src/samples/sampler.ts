import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { Reading, Sample, SampleSource } from "../workload/sample-source.ts";

export interface SamplerDeps {
  /** The sources, which are the same objects each time. */
  readonly sources: () => readonly SampleSource[];
  /** False while the machine has no instance that the samples would belong to. */
  readonly isEnabled: () => boolean;
  readonly onSample: (sample: Sample) => void;
  /** Called with each sample: metrics that this machine cannot measure, with the reason. */
  readonly onAbsent: (reasons: Readonly<Record<string, string>>) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** Takes samples until the signal, at multiples of the interval, so that the times are the same on every machine. */
export interface Sampler {
  run(signal: AbortSignal): Promise<void>;
  /** Sets the interval between samples. */
  setInterval(intervalMs: number): void;
}

/** Interval until a controller sets another one. */
const defaultIntervalMs = 15_000;

/** Share of the interval in which a source must respond. */
const sourceTimeShare = 0.8;
/** Share of the interval over which the machines of one host spread their samples. */
const spread = 0.15;

export function createSampler(deps: SamplerDeps): Sampler {
  const { sources, isEnabled, onSample, onAbsent, clock, random, log } = deps;
  const busy = new Set<SampleSource>();
  const phase = random() * spread;
  let intervalMs = defaultIntervalMs;
  let intervalChanged = new AbortController();
  let failing = "";
  /** Last reasons of each source, which remain valid while the source does not respond. */
  const reasons = new Map<SampleSource, Reading["absent"]>();

  /** Undefined if the source does not respond in time, or is still busy with an earlier reading. */
  async function read(source: SampleSource, signal: AbortSignal): Promise<Reading | undefined> {
    if (busy.has(source)) return undefined;
    busy.add(source);
    const reading = source.read(signal).finally(() => busy.delete(source));
    const late = new AbortController();
    const end = AbortSignal.any([signal, late.signal]);
    const limit = sleep(intervalMs * sourceTimeShare, undefined, { signal: end }).catch(() => undefined);
    try {
      const result = await Promise.race([reading, limit]);
      if (result !== undefined) reasons.set(source, result.absent);
      return result;
    } catch (error) {
      // Logged once per reason instead of every 15 s.
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== failing && !signal.aborted) log.warn("metrics not read", { reason });
      failing = reason;
      return undefined;
    } finally {
      late.abort();
    }
  }

  async function sample(timeMs: number, signal: AbortSignal): Promise<void> {
    const readings = (await Promise.all(sources().map((source) => read(source, signal)))).filter(
      (each) => each !== undefined,
    );
    if (signal.aborted) return;
    onAbsent(Object.assign({}, ...reasons.values()));
    const figures = readings
      .flatMap(({ values }) => Object.entries(values))
      .flatMap(([name, value]) => {
        const metricNumber = metricOf(name)?.number;
        return metricNumber === undefined || value === undefined || !Number.isFinite(value)
          ? []
          : [{ metricNumber, value }];
      });
    if (figures.length === 0) return;
    onSample({
      timeMs,
      metricNumbers: figures.map(({ metricNumber }) => metricNumber),
      values: figures.map(({ value }) => value),
    });
  }

  return {
    async run(signal) {
      let last = 0;
      while (!signal.aborted) {
        intervalChanged = new AbortController();
        const now = clock.now();
        const phaseMs = phase * intervalMs;
        const dueAt = (Math.floor((now - phaseMs) / intervalMs) + 1) * intervalMs + phaseMs;
        const cut = AbortSignal.any([signal, intervalChanged.signal]);
        await sleep(dueAt - now, undefined, { signal: cut }).catch(() => undefined);
        if (intervalChanged.signal.aborted) continue;
        const timeMs = Math.floor(clock.now() / intervalMs) * intervalMs;
        // A timer may fire early, and the clock may be set back.
        if (signal.aborted || timeMs === last || !isEnabled()) continue;
        last = timeMs;
        await sample(timeMs, signal);
      }
    },
    setInterval(next) {
      if (next === intervalMs) return;
      intervalMs = next;
      intervalChanged.abort();
    },
  };
}
