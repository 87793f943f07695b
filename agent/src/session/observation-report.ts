import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type InstanceObservation, ObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { OutgoingFrame } from "./session.ts";

export interface ObservationReportDeps {
  /** Undefined while there is no instance. */
  readonly instance: () => InstanceObservation | undefined;
  /** False while another agent of the machine reports, or this one rests: nothing is sent. */
  readonly isDue: () => boolean;
  readonly send: (frame: OutgoingFrame) => void;
  readonly now: () => number;
}

/** What the controller is told of the machine: each change, progress once a second, and all of it every 15 s. */
export interface ObservationReport {
  /** Several changes of one moment are one observation. */
  soon(): void;
  later(): void;
  tell(): void;
  /** Tells every 15 s until what it returns is called. */
  repeat(): () => void;
}

const everyMs = 15_000;
const progressEveryMs = 1_000;

export function createObservationReport({ instance, isDue, send, now }: ObservationReportDeps): ObservationReport {
  let telling: NodeJS.Immediate | undefined;
  let progress: NodeJS.Timeout | undefined;

  function tell(): void {
    clearImmediate(telling);
    clearTimeout(progress);
    telling = undefined;
    progress = undefined;
    if (!isDue()) return;
    const observed = instance();
    const value = create(ObservationSchema, {
      time: timestampFromMs(now()),
      ...(observed && { instance: observed }),
    });
    send({ case: "observation", value });
  }

  return {
    soon: () => void (telling ??= setImmediate(tell)),
    later: () => void (progress ??= setTimeout(tell, progressEveryMs)),
    tell,
    repeat() {
      const ticking = setInterval(tell, everyMs);
      return () => {
        clearInterval(ticking);
        clearTimeout(progress);
      };
    },
  };
}
