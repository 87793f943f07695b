import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import { type SamplesAck, SamplesSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { OutgoingFrame } from "../session/session.ts";
import type { Sample } from "../workload/sample-source.ts";
import type { SampleSpool } from "./sample-spool.ts";

export interface SampleSenderDeps {
  readonly spool: SampleSpool;
  /** Returns false if no controller is connected. */
  readonly send: (frame: OutgoingFrame) => boolean;
  readonly random: () => number;
  readonly log: Log;
}

/** Sends samples to the controller in order, one batch at a time; the next follows the acknowledgment. */
export interface SampleSender {
  take(sample: Sample): void;
  acknowledged(ack: SamplesAck): void;
  /** A session opened: the batch that was in flight on the previous one is sent again. */
  opened(): void;
  close(): void;
}

/** 25 minutes of samples; a day takes 58 batches. */
const batchSamples = 100;
/** Time limit for an acknowledgment, after which the batch is sent again. */
const ackTimeoutMs = 60_000;

export function createSampleSender({ spool, send, random, log }: SampleSenderDeps): SampleSender {
  let lastBatch = 0n;
  let inFlight: { readonly batch: bigint; readonly through: number } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let reportedLost = 0;

  function retryAfter(afterMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      inFlight = undefined;
      pump();
    }, afterMs).unref();
  }

  function pump(): void {
    if (closed || inFlight !== undefined || spool.size === 0) return;
    const { samples, through } = spool.oldest(batchSamples);
    lastBatch += 1n;
    const value = create(SamplesSchema, {
      batch: lastBatch,
      samples: samples.map(({ timeMs, metricNumbers, values }) => ({
        timeMs: BigInt(timeMs),
        slots: [...metricNumbers],
        values: [...values],
      })),
    });
    if (!send({ case: "samples", value })) return;
    inFlight = { batch: lastBatch, through };
    retryAfter(ackTimeoutMs);
  }

  function failed(error: unknown): void {
    log.warn("samples not stored", { reason: error instanceof Error ? error.message : String(error) });
  }

  return {
    take(sample) {
      spool.add(sample).catch(failed);
      if (spool.lost > 0 && reportedLost === 0) log.warn("samples lost: the spool is full", { stored: spool.size });
      reportedLost = spool.lost;
      pump();
    },
    acknowledged({ batch, stored, retryMs, refused, reason }) {
      if (inFlight?.batch !== batch) return;
      // Randomized, so that machines with the same delay do not retry simultaneously.
      if (!stored) return retryAfter(retryMs * (1 + random()));
      clearTimeout(timer);
      if (refused > 0) log.warn("samples refused", { refused, reason });
      spool.remove(inFlight.through).catch(failed);
      inFlight = undefined;
      pump();
    },
    opened() {
      clearTimeout(timer);
      inFlight = undefined;
      pump();
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
