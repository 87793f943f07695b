import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Sample } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { SampleSink, SamplesTaken } from "#fleet/session/sample-sink.ts";
import type { Samples, StoredSample } from "./samples/samples.ts";
import { judgeSamples } from "./judge-samples.ts";

export interface SampleCollectorDeps {
  readonly storedSamples: Pick<Samples, "insert">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** Gathers the samples of many machines into few statements. What it has not brought to the history it does not acknowledge. */
export interface SampleCollector extends SampleSink {
  /** Samples that wait for their statement. */
  readonly waiting: number;
  /** How old the newest sample was when the history took it last, in seconds. */
  readonly lagS: number;
  /** What is under way ends; agents keep what was not acknowledged. */
  close(): Promise<void>;
}

interface Waiting {
  readonly samples: readonly StoredSample[];
  answer(taken: SamplesTaken): void;
  readonly taken: SamplesTaken;
}

/** How long the first one waits for others. */
const gatherMs = 100;
const samplesAtOnce = 2_000;
/** More than these wait with the machines: some 10 MiB. */
const samplesWaiting = 20_000;
const retryMs = 5_000;

export function createSampleCollector({ storedSamples, clock, random, log }: SampleCollectorDeps): SampleCollector {
  let waiting: Waiting[] = [];
  let count = 0;
  let timer: NodeJS.Timeout | undefined;
  let inserting: Promise<void> | undefined;
  let closed = false;
  let away = false;
  let lagS = 0;
  const refusing = new Map<string, string>();

  const later = (): SamplesTaken => ({ kept: false, retryMs: Math.round(retryMs * (1 + random())) });

  function next(): readonly Waiting[] {
    let size = 0;
    const end = waiting.findIndex(({ samples }) => (size += samples.length) > samplesAtOnce);
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
        for (const { answer, taken } of batch) answer(taken);
        away = false;
      } catch (error) {
        if (!away) log.warn("samples not kept", { error: String(error) });
        away = true;
        for (const { answer } of batch) answer(later());
      }
    }
  }

  function begin(): void {
    timer = undefined;
    inserting ??= insertAll().finally(() => {
      inserting = undefined;
      if (waiting.length > 0) timer ??= setTimeout(begin, gatherMs);
    });
  }

  /** Once for each machine and reason, not with each batch. */
  function tellRefusal(machineId: string, reason: string): void {
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
    take(machineId, told: readonly Sample[]) {
      const { samples, refused, reason } = judgeSamples(machineId, told, clock.now());
      tellRefusal(machineId, reason);
      const taken: SamplesTaken = { kept: true, refused, reason };
      if (samples.length === 0) return Promise.resolve(taken);
      if (closed || count + samples.length > samplesWaiting) return Promise.resolve(later());
      count += samples.length;
      return new Promise((answer) => {
        waiting.push({ samples, taken, answer });
        if (inserting !== undefined) return;
        if (count >= samplesAtOnce) {
          clearTimeout(timer);
          begin();
        } else timer ??= setTimeout(begin, gatherMs);
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
