import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { SampleSink, SamplesOutcome } from "#fleet/session/sample-sink.ts";
import type { Samples, StoredSample } from "./samples/samples.ts";

export interface SampleCollectorDeps {
  readonly storedSamples: Pick<Samples, "insert">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * Collects the samples of many machines into few inserts. Samples are acknowledged once the history has them; agents
 * send unacknowledged ones again.
 */
export interface SampleCollector extends SampleSink {
  /** Number of samples that wait to be inserted. */
  readonly waiting: number;
  /** Age of the newest sample at the last insert, in seconds. */
  readonly lagS: number;
  /** Resolves after the running insert; agents retain samples that were not acknowledged. */
  close(): Promise<void>;
}

interface Waiting {
  readonly samples: readonly StoredSample[];
  respond(taken: SamplesOutcome): void;
  readonly taken: SamplesOutcome;
}

/** Time that the first sample of a batch waits for further samples. */
const batchDelayMs = 100;
const batchMax = 2_000;
/** Maximum number of waiting samples (about 10 MiB); above it machines have to retry. */
const waitingMax = 20_000;
const retryDelayMs = 5_000;

export function createSampleCollector({ storedSamples, clock, random, log }: SampleCollectorDeps): SampleCollector {
  let waiting: Waiting[] = [];
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  let inserting: Promise<void> | undefined;
  let closed = false;
  let isUnavailable = false;
  let lagS = 0;
  const refusing = new Map<string, string>();

  const retryLater = (): SamplesOutcome => ({ stored: false, retryMs: Math.round(retryDelayMs * (1 + random())) });

  function next(): readonly Waiting[] {
    let size = 0;
    const end = waiting.findIndex(({ samples }) => (size += samples.length) > batchMax);
    const batch = waiting.splice(0, end < 0 ? waiting.length : Math.max(end, 1));
    count -= batch.reduce((sum, { samples }) => sum + samples.length, 0);
    return batch;
  }

  async function insertAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = next();
      try {
        const all = batch.flatMap(({ samples }) => samples);
        await storedSamples.insert(all);
        lagS = (clock.now() - all.reduce((newest, { timeMs }) => Math.max(newest, timeMs), 0)) / 1_000;
        for (const { respond, taken } of batch) respond(taken);
        isUnavailable = false;
      } catch (error) {
        if (!isUnavailable) log.warn("samples not stored", { error: String(error) });
        isUnavailable = true;
        for (const { respond } of batch) respond(retryLater());
      }
    }
  }

  function begin(): void {
    timer = undefined;
    inserting ??= insertAll().finally(() => {
      inserting = undefined;
      if (waiting.length > 0) timer ??= setTimeout(begin, batchDelayMs);
    });
  }

  /** Logs a refusal once per machine, until a batch of the machine is accepted. */
  function logRefusal(machineId: string, reason: string): void {
    if (reason === "") refusing.delete(machineId);
    else if (!refusing.has(machineId)) {
      refusing.set(machineId, reason);
      log.warn("samples refused", { machine: machineId, reason });
    }
  }

  return {
    get waiting() {
      return count;
    },
    get lagS() {
      return lagS;
    },
    take(machineId, reported: readonly Sample[]) {
      const { samples, refused, reason } = checkSamples(machineId, reported, clock.now());
      logRefusal(machineId, reason);
      const taken: SamplesOutcome = { stored: true, refused, reason };
      if (samples.length === 0) return Promise.resolve(taken);
      if (closed || count + samples.length > waitingMax) return Promise.resolve(retryLater());
      count += samples.length;
      return new Promise((respond) => {
        waiting.push({ samples, taken, respond });
        if (inserting !== undefined) return;
        if (count >= batchMax) {
          clearTimeout(timer);
          begin();
        } else timer ??= setTimeout(begin, batchDelayMs);
      });
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      begin();
      await inserting;
    },
  };
}

export interface CheckedSamples {
  readonly samples: readonly StoredSample[];
  readonly refused: number;
  /** Reason for the refusal of samples; empty if none were refused. */
  readonly reason: string;
}

/** Maximum age of a sample: agents spool samples for this time, so older ones are implausible. */
const oldestMs = 24 * 3_600_000;
/** Maximum tolerated lead of a machine's clock. */
const clockSkewMaxMs = 60_000;
/** Maximum number of a metric. Numbers of later versions of the catalog are stored as well. */
const maxMetricNumber = 256;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Selects the plausible samples of a batch. A machine that sends implausible ones affects no other machine. */
function checkSamples(machineId: string, reported: readonly Sample[], now: number): CheckedSamples {
  if (!uuid.test(machineId))
    return { samples: [], refused: reported.length, reason: "The machine's id is not a UUID." };
  const samples: StoredSample[] = [];
  let reason = "";
  for (const sample of reported) {
    const fault = faultOf(sample, now);
    if (fault === undefined) samples.push({ machineId, timeMs: Number(sample.timeMs), values: valuesOf(sample) });
    else reason ||= fault;
  }
  return { samples, refused: reported.length - samples.length, reason };
}

function faultOf({ timeMs, slots, values }: Sample, now: number): string | undefined {
  const time = Number(timeMs);
  if (time > now + clockSkewMaxMs) {
    return `The machine's clock is at least ${Math.round((time - now) / 1_000)} s ahead of the controller's.`;
  }
  if (time < now - oldestMs) return `The sample is over 24 hours old: of ${new Date(Math.max(time, 0)).toISOString()}.`;
  if (slots.length === 0 || slots.length !== values.length)
    return "The sample does not have one value for each metric.";
  if (!slots.every((number) => number >= 1 && number <= maxMetricNumber))
    return "The sample names a metric number that no catalog has.";
  if (!values.every(Number.isFinite)) return "The sample has a value that is not finite.";
  return undefined;
}

function valuesOf({ slots, values }: Sample): ReadonlyMap<number, number> {
  return new Map(slots.map((number, index) => [number, values.at(index) ?? 0]));
}
