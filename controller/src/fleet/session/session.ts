import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type ControllerFrame,
  ControllerFrameSchema,
  type Hello,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Peer } from "@holdfast/mtls/peer.ts";
import type { ReceivedFrame } from "./agent-definitions.ts";
import type { SessionLimits } from "./session-limits.ts";

export type SessionCall = ServerDuplexStream<ReceivedFrame, ControllerFrame>;

/** One stream of one agent. Times named `...Ms` are of the monotonic clock. */
export interface AgentSession {
  readonly machineId: string;
  readonly peer: Peer;
  /**
   * Sequence number of the stream at this controller. A machine's stream with the highest number is its current one.
   */
  readonly arrival: number;
  /** Monotonic time at which the stream was opened. */
  readonly startedMs: number;
  readonly connectedAt: number;
  /** Monotonic time of the last frame. */
  lastSeenMs: number;
  hello: Hello | undefined;
  /** Revision of the machine's object at which the certificate was valid. */
  checkedAt: bigint;
  /** Revision of its presence key; 0 until it is written. */
  presence: bigint;
  /** Open durable tasks delivered on this stream, by id; `hasResult`: a result has arrived. */
  readonly delivered: Map<string, { hasResult: boolean }>;
  readonly closed: boolean;
  /** The newer stream of the same agent that replaced this one. It processes results that still arrive on this one. */
  readonly replacement: AgentSession | undefined;
  /** Waiters for results of quick tasks, by task id. */
  readonly waiting: Map<string, Waiter>;
  /**
   * Monotonic time at which this controller ended the stream. Its connection is closed about a second later, even if
   * the peer does not close it.
   */
  readonly endedMs: number | undefined;
  /** Queues a frame. Returns false if the stream is closed or its peer reads too slowly. */
  send(frame: MessageInitShape<typeof ControllerFrameSchema>["frame"]): boolean;
  /** Sends a quick task and resolves with its result. Throws MACHINE_UNREACHABLE. */
  run(task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /** True for the first result of an open task that was sent on this stream; marks the result as received. */
  expectsResult(taskId: string): boolean;
  /** Resolves the result's waiter. Returns false without one. */
  deliverResult(result: TaskResult): boolean;
  /**
   * Replaces this stream by a newer one of the same agent: waiters move to that stream, and the agent's last frames are
   * still read.
   */
  replaceWith(replacement: AgentSession, reason: string, goodbye: readonly string[]): void;
  /** Ends the stream with this status, after a Goodbye with these controllers if `goodbye` is given. */
  end(code: Code, reason: string, goodbye?: readonly string[]): void;
  /** Marks the stream as closed. Its waiters are rejected. */
  markClosed(): void;
}

export interface Waiter {
  readonly task: Task;
  /** The agent's current stream. */
  session: AgentSession;
  resolve(result: TaskResult): void;
  reject(error: Error): void;
}

export interface SessionOptions {
  readonly call: SessionCall;
  readonly peer: Peer;
  readonly arrival: number;
  readonly nowMs: number;
  readonly connectedAt: number;
  readonly queuedFrames: number;
  readonly monotonicMs: () => number;
  /** Called if too many frames wait for the peer to read them. */
  readonly overflowed: (session: AgentSession) => void;
}

export function createSession(options: SessionOptions): AgentSession {
  const { call, peer, arrival, nowMs, connectedAt, queuedFrames, monotonicMs, overflowed } = options;
  const waiting = new Map<string, Waiter>();
  let replacement: AgentSession | undefined;
  let closed = false;
  let endedMs: number | undefined;

  const session: AgentSession = {
    machineId: peer.identity.id,
    peer,
    arrival,
    startedMs: nowMs,
    connectedAt,
    lastSeenMs: nowMs,
    hello: undefined,
    checkedAt: 0n,
    presence: 0n,
    delivered: new Map(),
    get closed() {
      return closed;
    },
    get replacement() {
      return replacement;
    },
    waiting,
    get endedMs() {
      return endedMs;
    },
    send(frame) {
      if (closed) return false;
      // The stream is in object mode, so its length is the number of frames.
      if (call.writableLength >= queuedFrames) {
        overflowed(session);
        return false;
      }
      call.write(create(ControllerFrameSchema, { frame: frame ?? { case: undefined } }));
      return true;
    },
    run(task, timeoutMs, signal) {
      return new Promise((resolve, reject) => {
        const finish = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", onAbort);
          waiter.session.waiting.delete(task.id);
        };
        const giveUp = (reason: string) => {
          finish();
          waiter.session.send({ case: "cancelTask", value: { taskId: task.id } });
          reject(unreachable(reason));
        };
        const onAbort = () => giveUp("The request was canceled.");
        const timer = setTimeout(() => giveUp("The machine did not respond in time."), timeoutMs);
        const waiter: Waiter = {
          task,
          session,
          resolve: (result) => (finish(), resolve(result)),
          reject: (error) => (finish(), reject(error)),
        };
        waiting.set(task.id, waiter);
        if (signal?.aborted) return onAbort();
        signal?.addEventListener("abort", onAbort, { once: true });
        if (!session.send({ case: "task", value: task })) giveUp("The machine's stream is not open.");
      });
    },
    expectsResult(taskId) {
      if (waiting.has(taskId)) return true;
      const durable = session.delivered.get(taskId);
      if (durable === undefined || durable.hasResult) return false;
      durable.hasResult = true;
      return true;
    },
    deliverResult(result) {
      const waiter = waiting.get(result.taskId);
      waiter?.resolve(result);
      return waiter !== undefined;
    },
    replaceWith(to, reason, goodbye) {
      replacement = to;
      for (const [taskId, waiter] of waiting) {
        waiter.session = to;
        to.waiting.set(taskId, waiter);
      }
      waiting.clear();
      session.send({ case: "goodbye", value: { reason, controllers: [...goodbye] } });
      endedMs = monotonicMs();
      closed = true;
    },
    end(code, reason, goodbye) {
      if (closed) return;
      if (goodbye !== undefined && call.writableLength < queuedFrames) {
        session.send({ case: "goodbye", value: { reason, controllers: [...goodbye] } });
      }
      endedMs = monotonicMs();
      session.markClosed();
      if (code === Code.OK) call.end();
      else call.emit("error", { code, details: reason });
    },
    markClosed() {
      closed = true;
      for (const waiter of waiting.values()) waiter.reject(unreachable("The machine's stream broke."));
    },
  };
  return session;
}

/** The error MACHINE_UNREACHABLE with this detail. */
export function unreachable(detail: string): HoldfastError {
  return new HoldfastError("MACHINE_UNREACHABLE", detail);
}

export interface WelcomeDeps {
  readonly controllerId: string;
  readonly limits: Pick<SessionLimits, "heartbeatIntervalMs" | "sampleIntervalMs">;
  readonly controllers: () => readonly string[];
  readonly authorityGeneration: () => number;
  readonly hasLease: () => boolean;
}

/**
 * Sends the controllers' addresses, the authority's generation, the report intervals, and whether this controller has a
 * lease.
 */
export function sendWelcome(session: AgentSession, deps: WelcomeDeps): void {
  const { controllerId, controllers } = deps;
  const { heartbeatIntervalMs, sampleIntervalMs } = deps.limits;
  const authorityGeneration = BigInt(deps.authorityGeneration());
  const value = {
    controllerId,
    heartbeatIntervalMs,
    sampleIntervalMs,
    controllers: [...controllers()],
    authorityGeneration,
    withoutLease: !deps.hasLease(),
  };
  session.send({ case: "welcome", value });
}
