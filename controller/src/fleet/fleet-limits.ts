import type { Identity } from "@holdfast/common/identity.ts";
import type { Rate } from "@holdfast/common/concurrency/token-buckets.ts";
import type { SessionLimits } from "./session/session-limits.ts";

/** Limits on agents' traffic, and timeouts of the fleet. */
export interface FleetLimits extends SessionLimits {
  /**
   * Time for which a controller without a lease retains its streams while another controller can act. While no
   * controller can, they are retained without a limit.
   */
  readonly leaseGraceMs: number;
  /** Maximum size of a gRPC message. */
  readonly messageBytes: number;
  /** Maximum size of a task's input or result that is stored in etcd; larger ones are stored in the object store. */
  readonly inlineBytes: number;
  /** Maximum size of a payload. */
  readonly payloadBytes: number;
  /**
   * Rate of payload bytes, uploads and downloads of all machines together. Payload bytes are external memory of V8: the
   * faster it is allocated, the more often the complete heap is collected, and control tasks wait for that.
   */
  readonly payloadBytesPerSecond: number;
  /** Maximum number and total size of the stored payloads of one machine. */
  readonly payloadQuota: { readonly count: number; readonly bytes: number };
  /** Maximum number of open connections of the listener. */
  readonly connections: number;
  /** Time after which a connection without a call by a valid certificate is closed. */
  readonly unauthenticatedMs: number;
  /** Maximum number of concurrent unary calls on one connection, by the peer's kind. */
  readonly maxConcurrentCalls: Readonly<Record<Identity["kind"], number>>;
  /** Rate of failed enrollments from one source. */
  readonly failedEnrollments: Rate;
  /** Rate of payload streams opened by one machine. */
  readonly payloadStreams: Rate;
  /** Rate of certificate requests of one machine. */
  readonly certificates: Rate;
  /**
   * Maximum number of quick tasks of one machine and lane: sent and unanswered (`concurrency`), and waiting (`queued`).
   */
  readonly quickTasks: { readonly concurrency: number; readonly queued: number };
  /** Interval and batch size of redirects to controllers with fewer streams. */
  readonly rebalance: { readonly intervalMs: number; readonly batchSize: number };
  /** Time after which an ended task is deleted. */
  readonly taskRetentionMs: number;
}

export const defaultLimits: FleetLimits = {
  heartbeatIntervalMs: 4_000,
  sampleIntervalMs: 15_000,
  silenceMs: 9_000,
  leaseGraceMs: 10_000,
  welcomeMs: 10,
  helloTimeoutMs: 5_000,
  frames: { burst: 2_000, perSecond: 1_000 },
  frameBytes: { burst: 16 << 20, perSecond: 4 << 20 },
  resultBytes: { burst: 64 << 20, perSecond: 32 << 20 },
  messageBytes: 4 << 20,
  queuedFrames: 2_000,
  penaltyMs: 2_000,
  checkIntervalMs: 1_000,
  inlineBytes: 64 << 10,
  payloadBytes: 1 << 30,
  payloadBytesPerSecond: 16 << 20,
  payloadQuota: { count: 200, bytes: 4 * 2 ** 30 },
  connections: 15_000,
  unauthenticatedMs: 60_000,
  // Controllers forward many quick tasks to each other.
  maxConcurrentCalls: {
    controller: 1_000,
    host: 64,
    dns: 64,
    gateway: 64,
    issuer: 64,
    store: 8,
    inference: 8,
    registry: 8,
    ingress: 8,
    machine: 8,
  },
  failedEnrollments: { burst: 100, perSecond: 1 },
  payloadStreams: { burst: 500, perSecond: 10 },
  certificates: { burst: 60, perSecond: 0.2 },
  streamOpens: { burst: 100, perSecond: 1 },
  streamsPerMachine: 16,
  quickTasks: { concurrency: 100, queued: 1_000 },
  rebalance: { intervalMs: 10_000, batchSize: 100 },
  taskRetentionMs: 86_400_000,
};
