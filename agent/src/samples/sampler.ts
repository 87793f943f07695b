import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import type { Reading, Sample, SampleSource } from "./sample-source.ts";

export interface SamplerDeps {
  readonly sources: readonly SampleSource[];
  /** False while there is nobody whose figures they would be. */
  readonly wanted: () => boolean;
  readonly taken: (sample: Sample) => void;
  /** Told again with each sample: metrics that this machine cannot tell, with the reason. */
  readonly absent: (reasons: Readonly<Record<string, string>>) => void;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** Takes samples at times that are the same on every machine, until the signal. */
export interface Sampler {
  run(signal: AbortSignal): Promise<void>;
  /** From now on so far apart. */
  pace(intervalMs: number): void;
}

/** Until a controller asks for another one. */
const usualIntervalMs = 15_000;

/** A source has this share of the interval to tell. */
const patience = 0.8;
/** Machines of one host look spread over this share of the interval, and not all in one millisecond. */
const spread = 0.15;

export function createSampler(deps: SamplerDeps): Sampler {
  const { sources, wanted, taken, absent, clock, random, log } = deps;
  const busy = new Set<SampleSource>();
  const phase = random() * spread;
  let intervalMs = usualIntervalMs;
  let paced = new AbortController();
  let failing = "";
  /** A source that tells nothing this time has not said that its reasons are over. */
  const reasons = new Map<SampleSource, Reading["absent"]>();

  /** Undefined when it did not tell in time, or still has not told from the last time. */
  async function ask(source: SampleSource, signal: AbortSignal): Promise<Reading | undefined> {
    if (busy.has(source)) return undefined;
    busy.add(source);
    const reading = source.read(signal).finally(() => busy.delete(source));
    const late = new AbortController();
    const end = AbortSignal.any([signal, late.signal]);
    const limit = sleep(intervalMs * patience, undefined, { signal: end }).catch(() => undefined);
    try {
      const told = await Promise.race([reading, limit]);
      if (told !== undefined) reasons.set(source, told.absent);
      return told;
    } catch (error) {
      // Once for each reason, and not every 15 seconds.
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== failing && !signal.aborted) log.warn("figures not read", { reason });
      failing = reason;
      return undefined;
    } finally {
      late.abort();
    }
  }

  async function look(timeMs: number, signal: AbortSignal): Promise<void> {
    const readings = (await Promise.all(sources.map((source) => ask(source, signal)))).filter(
      (each) => each !== undefined,
    );
    if (signal.aborted) return;
    absent(Object.assign({}, ...reasons.values()));
    const figures = readings
      .flatMap(({ values }) => Object.entries(values))
      .flatMap(([name, value]) => {
        const slot = metricOf(name)?.slot;
        return slot === undefined || value === undefined || !Number.isFinite(value) ? [] : [{ slot, value }];
      });
    if (figures.length === 0) return;
    taken({ timeMs, slots: figures.map(({ slot }) => slot), values: figures.map(({ value }) => value) });
  }

  return {
    async run(signal) {
      let last = 0;
      while (!signal.aborted) {
        paced = new AbortController();
        const now = clock.now();
        const phaseMs = phase * intervalMs;
        const dueAt = (Math.floor((now - phaseMs) / intervalMs) + 1) * intervalMs + phaseMs;
        const cut = AbortSignal.any([signal, paced.signal]);
        await sleep(dueAt - now, undefined, { signal: cut }).catch(() => undefined);
        if (paced.signal.aborted) continue;
        const timeMs = Math.floor(clock.now() / intervalMs) * intervalMs;
        // A timer can come a little early, and a clock can be set back.
        if (signal.aborted || timeMs === last || !wanted()) continue;
        last = timeMs;
        await look(timeMs, signal);
      }
    },
    pace(next) {
      if (next === intervalMs) return;
      intervalMs = next;
      paced.abort();
    },
  };
}
