import type { Sample, Samples } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Session } from "./session.ts";

/** Where the samples of machines go. */
export interface SampleSink {
  /** Resolves with what became of them; never rejects. */
  take(machineId: string, samples: readonly Sample[]): Promise<SamplesTaken>;
}

export type SamplesTaken =
  | {
      readonly kept: true;
      /** So many will never be taken. */
      readonly refused: number;
      readonly reason: string;
    }
  | {
      readonly kept: false;
      readonly retryMs: number;
    };

const answering = new WeakSet<Session>();
/** To an agent that sends a batch before the last one was answered, which no honest one does. */
const tooEarlyRetryMs = 5_000;

/** Gives a batch to the sink, and the agent the answer: it sends no other one before. */
export async function acknowledgeSamples(
  sink: SampleSink,
  session: Session,
  { batch, samples }: Samples,
): Promise<void> {
  if (answering.has(session)) {
    session.send({ case: "samplesAck", value: { batch, kept: false, retryMs: tooEarlyRetryMs } });
    return;
  }
  answering.add(session);
  const taken = await sink.take(session.machineId, samples);
  answering.delete(session);
  session.send({ case: "samplesAck", value: { batch, ...taken } });
}
