import type { Clock } from "@holdfast/common/clock.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { createTokenBuckets, type Rate } from "@holdfast/common/concurrency/token-buckets.ts";

/** Limits and timeouts of one agent's stream. */
export interface SessionLimits {
  /** Interval between heartbeats of an agent. */
  readonly heartbeatIntervalMs: number;
  /** Interval between samples of a machine. */
  readonly sampleIntervalMs: number;
  /**
   * A stream without frames for this time is cut. An agent that no longer receives anything may send one more
   * heartbeat, so a machine is unreachable after this time and a heartbeat interval: below the 15 s promised to users.
   */
  readonly silenceMs: number;
  /**
   * Time that a controller needs to welcome one agent while all agents reconnect, by which agents compute their waiting
   * time. It is twice the largest measurement (docs/development/scale.md), because agents that redial too early delay
   * the others.
   */
  readonly welcomeMs: number;
  /** Time after which a stream without a hello is cut. */
  readonly helloTimeoutMs: number;
  /** Rate of streams opened by one machine. */
  readonly streamOpens: Rate;
  /** Maximum number of concurrent streams of one machine. */
  readonly streamsPerMachine: number;
  /** Rate of unrequested frames of one agent; a stream that exceeds it is cut. */
  readonly frames: Rate;
  /** Rate of bytes in unrequested frames of one agent; a stream that exceeds it is cut. */
  readonly frameBytes: Rate;
  /** Rate of bytes in requested results of one agent. A stream that exceeds it is read more slowly and not cut. */
  readonly resultBytes: Rate;
  /** Maximum number of frames that wait for one agent to read them. */
  readonly queuedFrames: number;
  /** Time for which a machine is refused after its stream was cut for misbehavior. */
  readonly penaltyMs: number;
  /** Interval of the checks of all streams. */
  readonly checkIntervalMs: number;
}

/** Limits the concurrent streams of each machine, and the rate at which it opens them. */
export interface StreamLimit {
  /** Counts a new stream. False if the machine has too many, or opens them too often. */
  take(machineId: string): boolean;
  leave(machineId: string): void;
}

export function createStreamLimit(
  { streamsPerMachine, streamOpens }: Pick<SessionLimits, "streamsPerMachine" | "streamOpens">,
  clock: Clock,
): StreamLimit {
  const streams = createKeyedCounter();
  const rates = createTokenBuckets(streamOpens, clock.monotonicMs);
  return {
    take(machineId) {
      if (streams.of(machineId) >= streamsPerMachine || !rates.admits(machineId, 1)) return false;
      streams.add(machineId);
      return true;
    },
    leave(machineId) {
      streams.add(machineId, -1);
    },
  };
}

/** Machines that are refused for `penaltyMs`, because they sent invalid or too many frames. */
export interface Penalties {
  add(machineId: string): void;
  has(machineId: string): boolean;
  /** Removes expired penalties. */
  sweep(): void;
}

export function createPenalties(penaltyMs: number, clock: Clock): Penalties {
  const untilMs = new Map<string, number>();
  return {
    add: (machineId) => {
      untilMs.set(machineId, clock.monotonicMs() + penaltyMs);
    },
    has: (machineId) => (untilMs.get(machineId) ?? 0) > clock.monotonicMs(),
    sweep() {
      const nowMs = clock.monotonicMs();
      for (const [machineId, until] of untilMs) if (nowMs >= until) untilMs.delete(machineId);
    },
  };
}
