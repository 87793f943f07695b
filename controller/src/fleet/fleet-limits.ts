import type { Identity } from "@holdfast/common/identity.ts";
import type { Rate } from "@holdfast/common/token-bucket.ts";
import type { SessionLimits } from "./session/session-limits.ts";

/** What agents may ask of a controller, and how long anything may take. */
export interface FleetLimits extends SessionLimits {
  /**
   * How long streams are kept that there is no lease for, while another controller may have one. While none has, they are kept
   * for as long as that takes.
   */
  readonly withoutLeaseMs: number;
  /** Largest single message. */
  readonly messageBytes: number;
  /** Bytes over which inputs and results go to the object store. */
  readonly inlineBytes: number;
  readonly payloadBytes: number;
  /**
   * Payloads of all machines together, each way counted. Their bytes are memory outside of V8's heap, and the more of it
   * comes at once the more often all of the heap is collected, which control tasks wait for.
   */
  readonly payloadBytesPerSecond: number;
  /** What one machine's agent has stored of its own at a time. */
  readonly heldPayloads: { readonly count: number; readonly bytes: number };
  /** Connections of the port, and how long one stays without a call by a good certificate. */
  readonly connections: number;
  readonly strangerMs: number;
  /** Unary calls under way at a time on one connection. */
  readonly callsAtOnce: Readonly<Record<Identity["kind"], number>>;
  /** Enrollments that come to nothing, from one source. */
  readonly failedEnrollments: Rate;
  /** Payload streams that one machine begins. */
  readonly payloadStreams: Rate;
  /** Certificates that one machine asks for. */
  readonly certificates: Rate;
  /** Quick tasks of one machine and lane: how many its agent has in hand, and how many more wait for their turn. */
  readonly quickTasks: { readonly atOnce: number; readonly inLine: number };
  /** How often this controller sends agents on to others that hold fewer, and how many at once. */
  readonly rebalance: { readonly everyMs: number; readonly atOnce: number };
  /** How long a task that ended is kept. */
  readonly taskKeptMs: number;
}

export const usualLimits: FleetLimits = {
  heartbeatIntervalMs: 4_000,
  sampleIntervalMs: 15_000,
  silenceMs: 9_000,
  withoutLeaseMs: 10_000,
  returnMs: 10,
  helloMs: 5_000,
  frames: { burst: 2_000, perSecond: 1_000 },
  frameBytes: { burst: 16 << 20, perSecond: 4 << 20 },
  answerBytes: { burst: 64 << 20, perSecond: 32 << 20 },
  messageBytes: 4 << 20,
  queuedFrames: 2_000,
  penaltyMs: 2_000,
  tickMs: 1_000,
  inlineBytes: 64 << 10,
  payloadBytes: 1 << 30,
  payloadBytesPerSecond: 16 << 20,
  heldPayloads: { count: 200, bytes: 4 * 2 ** 30 },
  connections: 15_000,
  strangerMs: 60_000,
  // Controllers pass on many quick tasks at once.
  callsAtOnce: { controller: 1_000, host: 64, dns: 64, gateway: 64, issuer: 64, store: 8, inference: 8, machine: 8 },
  failedEnrollments: { burst: 100, perSecond: 1 },
  payloadStreams: { burst: 500, perSecond: 10 },
  certificates: { burst: 60, perSecond: 0.2 },
  openings: { burst: 100, perSecond: 1 },
  streamsPerMachine: 16,
  quickTasks: { atOnce: 100, inLine: 1_000 },
  rebalance: { everyMs: 10_000, atOnce: 100 },
  taskKeptMs: 86_400_000,
};
