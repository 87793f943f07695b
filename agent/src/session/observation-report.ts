import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type InstanceObservation, ObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { OutgoingFrame } from "./session.ts";

export interface ObservationReportDeps {
  /** State of the workload; undefined while there is none. */
  readonly instance: () => InstanceObservation | undefined;
  /** False while another agent of the machine reports or this one is suspended; nothing is sent then. */
  readonly isDue: () => boolean;
  readonly send: (frame: OutgoingFrame) => void;
  readonly now: () => number;
}

/**
 * Reports the machine's state to the controller: a change when it happens, progress once a second, and the full state
 * every 15 s.
 */
export interface ObservationReport {
  /** Sends an observation at the end of this tick of the event loop; several calls send one. */
  schedule(): void;
  /** Sends an observation within a second; several calls send one. */
  scheduleProgress(): void;
  sendNow(): void;
  /** Starts reports every 15 s, and returns a function that ends them. */
  start(): () => void;
}

const reportIntervalMs = 15_000;
const progressIntervalMs = 1_000;

export function createObservationReport({ instance, isDue, send, now }: ObservationReportDeps): ObservationReport {
  let scheduled: NodeJS.Immediate | undefined;
  let progress: NodeJS.Timeout | undefined;

  function sendNow(): void {
    clearImmediate(scheduled);
    clearTimeout(progress);
    scheduled = undefined;
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
    schedule: () => void (scheduled ??= setImmediate(sendNow)),
    scheduleProgress: () => void (progress ??= setTimeout(sendNow, progressIntervalMs)),
    sendNow,
    start() {
      const ticking = setInterval(sendNow, reportIntervalMs);
      return () => {
        clearInterval(ticking);
        clearTimeout(progress);
      };
    },
  };
}
