import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import { type SamplesAck, SamplesSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { OutgoingFrame } from "../session/session.ts";
import type { Sample } from "./sample-source.ts";
import type { SampleSpool } from "./sample-spool.ts";

export interface SampleSenderDeps {
  readonly spool: SampleSpool;
  /** False when no controller is there to take it. */
  readonly send: (frame: OutgoingFrame) => boolean;
  readonly random: () => number;
  readonly log: Log;
}

/** Brings samples to the history, in order, one batch at a time: the next one goes when the last is acknowledged. */
export interface SampleSender {
  take(sample: Sample): void;
  acknowledged(ack: SamplesAck): void;
  /** A session opened: what was under way on the one before comes again. */
  opened(): void;
  close(): void;
}

/** 25 minutes of samples: a day's outage is told in 58 batches. */
const batchSamples = 100;
/** A controller of an older version never answers. */
const silenceMs = 60_000;

export function createSampleSender({ spool, send, random, log }: SampleSenderDeps): SampleSender {
  let lastBatch = 0n;
  let underWay: { readonly batch: bigint; readonly through: number } | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let lostTold = 0;

  function again(afterMs: number): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      underWay = undefined;
      pump();
    }, afterMs).unref();
  }

  function pump(): void {
    if (closed || underWay !== undefined || spool.size === 0) return;
    const { samples, through } = spool.oldest(batchSamples);
    lastBatch += 1n;
    const value = create(SamplesSchema, {
      batch: lastBatch,
      samples: samples.map(({ timeMs, slots, values }) => ({
        timeMs: BigInt(timeMs),
        slots: [...slots],
        values: [...values],
      })),
    });
    if (!send({ case: "samples", value })) return;
    underWay = { batch: lastBatch, through };
    again(silenceMs);
  }

  function failed(error: unknown): void {
    log.warn("samples not kept on disk", { reason: error instanceof Error ? error.message : String(error) });
  }

  return {
    take(sample) {
      spool.add(sample).catch(failed);
      if (spool.lost > 0 && lostTold === 0) log.warn("samples lost: the spool is full", { kept: spool.size });
      lostTold = spool.lost;
      pump();
    },
    acknowledged({ batch, kept, retryMs, refused, reason }) {
      if (underWay?.batch !== batch) return;
      // Spread, so that machines that were told the same do not come back at once.
      if (!kept) return again(retryMs * (1 + random()));
      clearTimeout(timer);
      if (refused > 0) log.warn("samples refused", { refused, reason });
      spool.forget(underWay.through).catch(failed);
      underWay = undefined;
      pump();
    },
    opened() {
      clearTimeout(timer);
      underWay = undefined;
      pump();
    },
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
