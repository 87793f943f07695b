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

export type SessionCall = ServerDuplexStream<ReceivedFrame, ControllerFrame>;

/** One stream of one agent. */
export interface Session {
  readonly machineId: string;
  readonly peer: Peer;
  /** Counts up with each stream of this controller: the newest one of a machine wins. */
  readonly arrival: number;
  readonly startedMs: number;
  readonly connectedAt: number;
  /** Monotonic time of the last frame. */
  lastSeenMs: number;
  hello: Hello | undefined;
  /** Revision of the machine's object by which the certificate was found good. */
  checkedAt: bigint;
  /** Revision of its presence key; 0 until it is written. */
  presence: bigint;
  /** Durable tasks that went down this stream and are open; whether a result of theirs came is beside each. */
  readonly delivered: Map<string, { answered: boolean }>;
  readonly closed: boolean;
  /**
   * The newer stream of the same agent, which replaced this one; frames that still arrive on this one are the heir's.
   */
  readonly heir: Session | undefined;
  /** Waiters for results of quick tasks, by the task's id. */
  readonly waiting: Map<string, Waiter>;
  /** Monotonic time at which it was ended here; its connection goes soon after, whatever the peer does. */
  readonly endedMs: number | undefined;
  /** Queues a frame; false when the stream is closed or its peer reads too slowly. */
  send(frame: MessageInitShape<typeof ControllerFrameSchema>["frame"]): boolean;
  /** Sends a quick task and waits for its result. */
  run(task: Task, timeoutMs: number, signal?: AbortSignal): Promise<TaskResult>;
  /** Whether this is a result that the agent was asked for by this stream: the first one of a task that is open. */
  takesAnswer(taskId: string): boolean;
  /** Hands a result to its waiter; false without one. */
  answer(result: TaskResult): boolean;
  /** Gives way to a newer stream of the same agent: waiters move to it, and the agent's last frames are read. */
  handOver(heir: Session, reason: string, goodbye: readonly string[]): void;
  /** Ends the stream with this status, after a Goodbye when that is given. */
  end(code: Code, reason: string, goodbye?: readonly string[]): void;
  /** The peer is gone: waiters for results get an error. */
  gone(): void;
}

export interface Waiter {
  readonly task: Task;
  /** Where the task's agent is now. */
  session: Session;
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
  /** Too many frames wait for the peer to read them. */
  readonly overflowed: (session: Session) => void;
}

export function createSession(options: SessionOptions): Session {
  const { call, peer, arrival, nowMs, connectedAt, queuedFrames, monotonicMs, overflowed } = options;
  const waiting = new Map<string, Waiter>();
  let heir: Session | undefined;
  let closed = false;
  let endedMs: number | undefined;

  const session: Session = {
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
    get heir() {
      return heir;
    },
    waiting,
    get endedMs() {
      return endedMs;
    },
    send(frame) {
      if (closed) return false;
      // It counts frames: the stream is in object mode.
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
        const giveUp = (why: string) => {
          finish();
          waiter.session.send({ case: "cancelTask", value: { taskId: task.id } });
          reject(unreachable(why));
        };
        const onAbort = () => giveUp("The request was given up.");
        const timer = setTimeout(() => giveUp("The machine did not answer in time."), timeoutMs);
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
    takesAnswer(taskId) {
      if (waiting.has(taskId)) return true;
      const durable = session.delivered.get(taskId);
      if (durable === undefined || durable.answered) return false;
      durable.answered = true;
      return true;
    },
    answer(result) {
      const waiter = waiting.get(result.taskId);
      waiter?.resolve(result);
      return waiter !== undefined;
    },
    handOver(to, reason, goodbye) {
      heir = to;
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
      session.gone();
      if (code === Code.OK) call.end();
      else call.emit("error", { code, details: reason });
    },
    gone() {
      closed = true;
      for (const waiter of waiting.values()) waiter.reject(unreachable("The machine's stream broke."));
    },
  };
  return session;
}

/** The 503 of a machine that does not answer. */
export function unreachable(detail: string): HoldfastError {
  return new HoldfastError("MACHINE_UNREACHABLE", detail);
}
