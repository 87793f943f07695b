import type { Sample, Samples } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { definePart } from "#kernel/part.ts";
import type { AgentSession } from "./session.ts";

/** Destination of the samples of machines. */
export interface SampleSink {
  /** Stores a batch. Resolves with the outcome; never rejects. */
  take(machineId: string, samples: readonly Sample[]): Promise<SamplesOutcome>;
}

export const sampleSinkPart = definePart<SampleSink>("destination of samples");

export type SamplesOutcome =
  | {
      readonly stored: true;
      /** Number of samples that will never be stored. */
      readonly refused: number;
      readonly reason: string;
    }
  | {
      readonly stored: false;
      readonly retryMs: number;
    };

const pending = new WeakSet<AgentSession>();
/** Retry delay for an agent that sends a batch before the last one was acknowledged, which a correct agent does not. */
const tooEarlyRetryMs = 5_000;

/** Passes a batch to the sink and acknowledges it. The agent sends its next batch after the acknowledgment. */
export async function acknowledgeSamples(
  sink: SampleSink,
  session: AgentSession,
  { batch, samples }: Samples,
): Promise<void> {
  if (pending.has(session)) {
    session.send({ case: "samplesAck", value: { batch, stored: false, retryMs: tooEarlyRetryMs } });
    return;
  }
  pending.add(session);
  const taken = await sink.take(session.machineId, samples);
  pending.delete(session);
  session.send({ case: "samplesAck", value: { batch, ...taken } });
}

/** The raw samples in the history. */
export interface StoredSamples {
  recent(
    queries: readonly { readonly machineId: string; readonly afterMs: number }[],
    slots: readonly number[],
    limit?: number,
  ): Promise<
    readonly { readonly machineId: string; readonly timeMs: number; readonly values: ReadonlyMap<number, number> }[]
  >;
  /** Number of a machine's values between two times (milliseconds since 1970), by roll-ups of minutes. */
  countValues(machineId: string, afterMs: number, beforeMs: number): Promise<number>;
}

export const storedSamplesPart = definePart<StoredSamples>("stored samples");
