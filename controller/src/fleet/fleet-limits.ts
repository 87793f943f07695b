import type { Identity } from "@holdfast/common/identity.ts";
import type { Rate } from "@holdfast/common/concurrency/token-buckets.ts";
import type { SessionLimits } from "./session/session-limits.ts";

/** Limits on agents' traffic, and timeouts of the fleet. */
export interface FleetLimits extends SessionLimits {
  /**
   * Time that a controller without a lease retains its streams while another controller can act. While none can, they
   * are retained without a limit.
   */
  readonly leaseGraceMs: number;
  /** Largest gRPC message. */
  readonly messageBytes: number;
  /** Larger inputs and results of tasks are stored in the object store. */
  readonly inlineBytes: number;
  /** Largest payload. */
  readonly payloadBytes: number;
  /**
   * Rate of payload bytes, uploads and downloads of all machines together. Payload bytes are external memory of V8: the
   * faster it is allocated the more often the whole heap is collected, and control tasks wait for that.
   */
  readonly payloadBytesPerSecond: number;
  /** Stored payloads of one machine. */
  readonly payloadQuota: { readonly count: number; readonly bytes: number };
  /** Open connections of the listener. */
  readonly connections: number;
  /** Time after which a connection without a call by a valid certificate is closed. */
  readonly unauthenticatedMs: number;
  /** Concurrent unary calls on one connection, by the peer's kind. */
  readonly callsAtOnce: Readonly<Record<Identity["kind"], number>>;
  /** Failed enrollments from one source. */
  readonly failedEnrollments: Rate;
  /** Payload streams opened by one machine. */
  readonly payloadStreams: Rate;
  /** Certificate requests of one machine. */
  readonly certificates: Rate;
  /** Quick tasks of one machine and lane: sent and unanswered (`atOnce`), and waiting here to be sent (`queued`). */
  readonly quickTasks: { readonly atOnce: number; readonly queued: number };
  /** Interval and batch size of redirects to controllers with fewer streams. */
  readonly rebalance: { readonly everyMs: number; readonly atOnce: number };
  /** Time after which an ended task is deleted. */
  readonly taskRetentionMs: number;
}

export const defaultLimits: FleetLimits = {
  heartbeatIntervalMs: 4_000,
  sampleIntervalMs: 15_000,
  silenceMs: 9_000,
  leaseGraceMs: 10_000,
  reconnectMs: 10,
  helloMs: 5_000,
  frames: { burst: 2_000, perSecond: 1_000 },
  frameBytes: { burst: 16 << 20, perSecond: 4 << 20 },
  resultBytes: { burst: 64 << 20, perSecond: 32 << 20 },
  messageBytes: 4 << 20,
  queuedFrames: 2_000,
  penaltyMs: 2_000,
  tickMs: 1_000,
  inlineBytes: 64 << 10,
  payloadBytes: 1 << 30,
  payloadBytesPerSecond: 16 << 20,
  payloadQuota: { count: 200, bytes: 4 * 2 ** 30 },
  connections: 15_000,
  unauthenticatedMs: 60_000,
  // Controllers forward many quick tasks to each other.
  callsAtOnce: { controller: 1_000, host: 64, dns: 64, gateway: 64, issuer: 64, store: 8, inference: 8, machine: 8 },
  failedEnrollments: { burst: 100, perSecond: 1 },
  payloadStreams: { burst: 500, perSecond: 10 },
  certificates: { burst: 60, perSecond: 0.2 },
  openings: { burst: 100, perSecond: 1 },
  streamsPerMachine: 16,
  quickTasks: { atOnce: 100, queued: 1_000 },
  rebalance: { everyMs: 10_000, atOnce: 100 },
  taskRetentionMs: 86_400_000,
};
