import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { SamplesAck, Welcome } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Workload } from "../workload/workload.ts";
import type { OutgoingFrame } from "../session/session.ts";
import { createMachineSources, type MachineSourcesDeps } from "./machine-sources.ts";
import { createSampleSender, type SampleSender } from "./sample-sender.ts";
import { openSampleSpool, type SampleSpool } from "./sample-spool.ts";
import { createSampler } from "./sampler.ts";

export interface SamplingDeps extends Pick<MachineSourcesDeps, "group" | "dataDir" | "networkInterface"> {
  /** File of the sample spool. */
  readonly path: string;
  /** The machine's workload; undefined before its first spec. */
  readonly workload: () => Pick<Workload, "status" | "sources"> | undefined;
  /** Returns false if no controller is connected. */
  readonly send: (frame: OutgoingFrame) => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * Measures the machine over time. The sampler reads all sources at an interval (sampler.ts), the spool stores the
 * samples on disk (sample-spool.ts), and the sender delivers them to a controller in batches (sample-sender.ts).
 */
export interface Sampling {
  /**
   * Runs until the signal, then closes the spool's file, so that the next agent can send the remaining samples.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Called when a session opened: applies the interval of the controller and starts the delivery of samples. */
  opened(welcome: Welcome): void;
  acknowledged(ack: SamplesAck): void;
}

/** Max number of stored samples: a day at an interval of 15 s. */
const maxSamples = 5_760;
const retryMs = 15_000;

export function createSampling({ path, group, dataDir, networkInterface, workload, ...deps }: SamplingDeps): Sampling {
  const { send, clock, random, log } = deps;
  /** Undefined while sampling is suspended. */
  let sender: SampleSender | undefined;
  const storageBytes = () => workload()?.status.storageBytes;
  const machineSources = createMachineSources({
    group,
    dataDir,
    storageBytes,
    networkInterface,
    monotonicMs: clock.monotonicMs,
  });
  const sampler = createSampler({
    sources: () => [...machineSources, ...(workload()?.sources ?? [])],
    isEnabled: () => storageBytes() !== undefined,
    onSample: (sample) => sender?.take(sample),
    onAbsent: (reasons) => workload()?.status.setAbsentMetrics(reasons),
    clock,
    random,
    log,
  });

  /**
   * A disk that cannot be written must not end the agent, so opening is retried. Undefined if the signal came first.
   */
  async function openSpool(signal: AbortSignal): Promise<SampleSpool | undefined> {
    while (!signal.aborted) {
      try {
        return await openSampleSpool(path, maxSamples);
      } catch (error) {
        log.warn("sample spool not opened", { reason: error instanceof Error ? error.message : String(error) });
        await sleep(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  return {
    async run(signal) {
      const spool = await openSpool(signal);
      if (spool === undefined) return;
      const current = createSampleSender({ spool, send, random, log });
      sender = current;
      current.opened();
      await sampler.run(signal);
      sender = undefined;
      current.close();
      await spool.close();
    },
    opened({ sampleIntervalMs }) {
      if (sampleIntervalMs > 0) sampler.setInterval(sampleIntervalMs);
      sender?.opened();
    },
    acknowledged: (ack) => sender?.acknowledged(ack),
  };
}
