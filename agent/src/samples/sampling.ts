import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { SamplesAck, Welcome } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { InstanceStatus } from "../instance/instance-status.ts";
import type { OutgoingFrame } from "../session/session.ts";
import { createArchiveSource } from "./archive-source.ts";
import { createEngineSource } from "./engine-source.ts";
import { createHealthSource } from "./health-source.ts";
import { createMachineSources, type MachineSourcesDeps } from "./machine-sources.ts";
import { createQueueSource } from "./queue-source.ts";
import { createSampler } from "./sampler.ts";
import { createSampleSender, type SampleSender } from "./sample-sender.ts";
import { openSampleSpool, type SampleSpool } from "./sample-spool.ts";

export interface SamplingDeps extends Pick<MachineSourcesDeps, "group" | "dataDir" | "networkInterface"> {
  /** File of the samples that no controller has acknowledged. */
  readonly path: string;
  readonly status: Pick<InstanceStatus, "storageBytes" | "cannotTell" | "level">;
  /** The engine while it runs. */
  readonly engine: () => DrivenInstance | undefined;
  /** What is known of the archive of its log; undefined while there is none. */
  readonly archive: () => ArchiveObservation | undefined;
  /** False when no controller is there to take it. */
  readonly send: (frame: OutgoingFrame) => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** What the machine is like over time, from its sources to the history. */
export interface Sampling {
  /** Until the signal. Only meanwhile the file is its own: who comes after finds in it what was not sent. */
  run(signal: AbortSignal): Promise<void>;
  /** A controller took over. */
  opened(welcome: Welcome): void;
  acknowledged(ack: SamplesAck): void;
}

/** A day of them, 15 s apart. */
const mostSamples = 5_760;
const openAgainMs = 15_000;

export function createSampling({
  path,
  group,
  dataDir,
  networkInterface,
  status,
  engine,
  archive,
  ...deps
}: SamplingDeps): Sampling {
  const { send, clock, random, log } = deps;
  /** While it runs. */
  let sender: SampleSender | undefined;
  const sampler = createSampler({
    sources: [
      ...createMachineSources({
        group,
        dataDir,
        storageBytes: () => status.storageBytes,
        networkInterface,
        monotonicMs: clock.monotonicMs,
      }),
      createEngineSource({ engine, monotonicMs: clock.monotonicMs }),
      createQueueSource(engine),
      createHealthSource(status),
      createArchiveSource(archive, clock.now),
    ],
    wanted: () => status.storageBytes !== undefined,
    taken: (sample) => sender?.take(sample),
    absent: status.cannotTell,
    clock,
    random,
    log,
  });

  /** A disk that takes no file is no reason for the agent to end. Undefined when the signal came first. */
  async function openSpool(signal: AbortSignal): Promise<SampleSpool | undefined> {
    while (!signal.aborted) {
      try {
        return await openSampleSpool(path, mostSamples);
      } catch (error) {
        log.warn("no samples are kept", { reason: error instanceof Error ? error.message : String(error) });
        await sleep(openAgainMs, undefined, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  return {
    async run(signal) {
      const spool = await openSpool(signal);
      if (spool === undefined) return;
      const mine = createSampleSender({ spool, send, random, log });
      sender = mine;
      mine.opened();
      await sampler.run(signal);
      sender = undefined;
      mine.close();
      await spool.close();
    },
    opened({ sampleIntervalMs }) {
      if (sampleIntervalMs > 0) sampler.pace(sampleIntervalMs);
      sender?.opened();
    },
    acknowledged: (ack) => sender?.acknowledged(ack),
  };
}
