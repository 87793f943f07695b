import type { Rate } from "@holdfast/common/token-bucket.ts";

/** What one agent's stream may ask of a controller, and how long it may say nothing. */
export interface SessionLimits {
  readonly heartbeatIntervalMs: number;
  /** How far apart agents take samples. */
  readonly sampleIntervalMs: number;
  /**
   * A stream that says nothing for so long is cut. An agent that hears nothing any more, but is heard, sends one more
   * heartbeat before its kernel waits for an answer to that one: so a machine is known to be unreachable after this time and
   * a heartbeat's, which together are below the 15 s that users are promised.
   */
  readonly silenceMs: number;
  /**
   * What it takes to welcome one agent of a fleet that comes back at once; docs/scale.md has the measurements. It is twice the
   * most that was measured: agents that hang up because the line is slower than they were told make it slower for the others.
   */
  readonly returnMs: number;
  /** A stream must say who it is within this time. */
  readonly helloMs: number;
  /** Streams that one machine opens, and that it has at a time. */
  readonly openings: Rate;
  readonly streamsPerMachine: number;
  /** Frames that one agent sends unasked; a stream that sends more is cut. */
  readonly frames: Rate;
  readonly frameBytes: Rate;
  /**
   * Bytes of results that one agent was asked for. They are bounded by what is asked, so that a stream over this rate is read
   * more slowly and never cut.
   */
  readonly answerBytes: Rate;
  /** Frames that wait for one agent to read them. */
  readonly queuedFrames: number;
  /** How long a misbehaving agent is refused after it was cut. */
  readonly penaltyMs: number;
  /** How often all streams are looked at; one timer for all of them. */
  readonly tickMs: number;
}
