import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { SampleSink, SamplesOutcome } from "#fleet/session/sample-sink.ts";
import type { Samples, StoredSample } from "./samples/samples.ts";
import { checkSamples } from "./check-samples.ts";

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
