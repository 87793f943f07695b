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

/** Gives a batch to the sink, and the agent the answer: it sends no other one before. */
export async function acknowledgeSamples(
  sink: SampleSink,
  session: Session,
  { batch, samples }: Samples,
): Promise<void> {
  const taken = await sink.take(session.machineId, samples);
  session.send({ case: "samplesAck", value: { batch, ...taken } });
}
