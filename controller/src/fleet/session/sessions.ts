import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createTokenBucket } from "@holdfast/common/concurrency/token-buckets.ts";
import type { Peer } from "@holdfast/mtls/peer.ts";
import type {
  InstanceObservation,
  PrimaryLeaseRequest,
  Samples,
  TaskProgress,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { ReceivedFrame } from "./agent-definitions.ts";
import { helloProblem } from "./bounded-frames.ts";
import { createSession, sendWelcome, type AgentSession, type SessionCall, type WelcomeDeps } from "./session.ts";
import { createPenalties, createStreamLimit, type SessionLimits } from "./session-limits.ts";

/** Handlers of events and frames on the streams. */
export interface SessionEvents {
  /** Checks a stream after its hello; throws to refuse it. */
  check(session: AgentSession): Promise<unknown>;
  /** Checks a stream after its hello and writes its presence key; throws to refuse it. */
  admit(session: AgentSession): Promise<void>;
  /** Called when the stream is the machine's current one and was welcomed. */
  opened(session: AgentSession): void;
  observation(session: AgentSession, instance: InstanceObservation): void;
  progress(session: AgentSession, progress: TaskProgress): void;
  result(session: AgentSession, result: TaskResult): void;
  samples(session: AgentSession, samples: Samples): void;
  primaryLease(session: AgentSession, request: PrimaryLeaseRequest): void;
  closed(session: AgentSession): void;
}

export interface SessionsDeps extends WelcomeDeps {
  readonly limits: SessionLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the connection of a stream. */
  readonly disconnect: (address: string) => void;
  readonly events: SessionEvents;
}

/**
 * The agent streams of one controller. A stream begins with the agent's hello, which is checked; the controller
 * responds with a welcome. After that heartbeats, observations, task results, samples and lease requests arrive. The
 * newest stream of a machine is its current one. Streams with too many, no or invalid frames are cut.
 */
export interface Sessions {
  accept(call: SessionCall, peer: Peer): void;
  get(machineId: string): AgentSession | undefined;
  values(): IterableIterator<AgentSession>;
  readonly size: number;
  /**
   * Ends a misbehaving stream with a warning. After invalid or too many frames its machine is refused for `penaltyMs`.
   */
  cut(session: AgentSession, code: Code, reason: string): void;
  /** Ends a stream with a Goodbye, without a penalty. */
  release(session: AgentSession, reason: string): void;
  /** Sends every agent a welcome with the current controllers, authority generation and lease. */
  welcomeAll(): void;
  /** Ends all streams with a Goodbye. */
  releaseAll(reason: string): void;
  close(): void;
}

/** Time that a peer has to read the final status before its connection is closed. */
const lingerMs = 1_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { limits, clock, log, controllers, disconnect, events } = deps;
  const all = new Set<AgentSession>();
  const streamLimit = createStreamLimit(limits, clock);
  const open = new Map<string, AgentSession>();
  const ended = new Set<AgentSession>();
  /** Streams of one machine are admitted in the order of their hellos, so that the newest presence is written last. */
  const admit = createKeyedMutex();
  const penalties = createPenalties(limits.penaltyMs, clock);
  let arrivals = 0;
  let checkedMs = clock.monotonicMs();
  // One timer for all streams.
  const checkTimer = setInterval(tick, limits.checkIntervalMs).unref();

  function tick(): void {
    const nowMs = clock.monotonicMs();
    const now = clock.now();
    // A process that was suspended must first read the frames that arrived during the suspend.
    const wasSuspended = nowMs - checkedMs > 2 * limits.checkIntervalMs;
    checkedMs = nowMs;
    for (const session of wasSuspended ? [] : all) {
      if (session.hello === undefined) {
        if (nowMs - session.startedMs > limits.helloTimeoutMs) cut(session, Code.DEADLINE_EXCEEDED, "no hello");
      } else if (nowMs - session.lastSeenMs > limits.silenceMs) cut(session, Code.DEADLINE_EXCEEDED, "silent");
      else if (now > session.peer.notAfter) cut(session, Code.UNAUTHENTICATED, "the certificate expired");
    }
    for (const session of ended) {
      if (nowMs - (session.endedMs ?? nowMs) < lingerMs) continue;
      ended.delete(session);
      disconnect(session.peer.address);
    }
    penalties.sweep();
  }

  function accept(call: SessionCall, peer: Peer): void {
    const nowMs = clock.monotonicMs();
    if (!streamLimit.take(peer.identity.id)) {
      call.emit("error", { code: Code.RESOURCE_EXHAUSTED, details: "too many streams of this machine" });
      return;
    }
    const session = createSession({
      call,
      peer,
      arrival: (arrivals += 1),
      nowMs,
      connectedAt: clock.now(),
      queuedFrames: limits.queuedFrames,
      monotonicMs: clock.monotonicMs,
      overflowed: (full) => cut(full, Code.RESOURCE_EXHAUSTED, "the agent reads too slowly"),
    });
    const frames = createTokenBucket(limits.frames, nowMs);
    const bytes = createTokenBucket(limits.frameBytes, nowMs);
    const resultBytes = createTokenBucket(limits.resultBytes, nowMs);
    all.add(session);
    call.on("cancelled", () => onClosed(session));
    call.on("end", () => {
      if (!session.closed || session.replacement !== undefined) call.end();
      onClosed(session);
    });
    call.on("data", (received: ReceivedFrame) => {
      try {
        onFrame(received);
      } catch (error) {
        // An error thrown from a stream's callback would end the controller.
        log.error("agent frame failed", { machine: session.machineId, frame: received.frame?.frame.case, error });
        cut(session, Code.INTERNAL, "a frame could not be processed");
      }
    });
    function onFrame(received: ReceivedFrame): void {
      if (session.closed) return forwardResult(session, received);
      const atMs = clock.monotonicMs();
      session.lastSeenMs = atMs;
      if (isRequestedResult(session, received)) {
        const waitMs = resultBytes.spend(received.sizeBytes, atMs);
        if (waitMs > 0) pauseReading(session, call, waitMs);
        receive(session, call, received);
      } else if (!frames.take(1, atMs) || !bytes.take(received.sizeBytes, atMs)) {
        call.pause();
        cut(session, Code.RESOURCE_EXHAUSTED, "too many frames");
      } else receive(session, call, received);
    }
    if (penalties.has(session.machineId))
      release(session, "the machine's last stream was cut for invalid or too many frames");
  }

  /** Reads nothing from the stream for this time. */
  function pauseReading(session: AgentSession, call: SessionCall, waitMs: number): void {
    call.pause();
    setTimeout(() => {
      if (!session.closed || session.replacement !== undefined) call.resume();
    }, waitMs).unref();
  }

  /**
   * Processes a result that was in flight when the agent changed streams. The agent repeats its observations by itself.
   */
  function forwardResult(session: AgentSession, { frame }: ReceivedFrame): void {
    let newest = session.replacement;
    while (newest?.replacement !== undefined) newest = newest.replacement;
    if (newest !== undefined && frame?.frame.case === "taskResult") events.result(newest, frame.frame.value);
  }

  function receive(session: AgentSession, call: SessionCall, { frame }: ReceivedFrame): void {
    if (frame === undefined) return cut(session, Code.INVALID_ARGUMENT, "not a frame");
    const { case: kind, value } = frame.frame;
    if (kind === "hello") {
      if (session.hello !== undefined) return cut(session, Code.INVALID_ARGUMENT, "a second hello");
      if (value.machineId !== session.machineId) {
        return cut(session, Code.PERMISSION_DENIED, "hello for another machine");
      }
      const fault = helloProblem(value);
      if (fault !== undefined) return cut(session, Code.INVALID_ARGUMENT, fault);
      session.hello = value;
      const welcomed = value.standby ? welcomeStandby(session) : welcome(session, call);
      welcomed.catch((error: unknown) => refuse(session, error));
      return;
    }
    if (session.hello === undefined) return cut(session, Code.INVALID_ARGUMENT, "a frame before hello");
    if (kind !== "heartbeat" && session.hello.standby) {
      return cut(session, Code.INVALID_ARGUMENT, "a standby sends heartbeats only");
    }
    if (kind === "heartbeat") {
      const fleetReturnMs = Math.ceil(open.size * limits.welcomeMs);
      session.send({ case: "heartbeatAck", value: { sequence: frame.sequence, fleetReturnMs } });
    } else if (kind === "observation") {
      if (value.instance !== undefined) events.observation(session, value.instance);
    } else if (kind === "taskProgress") events.progress(session, value);
    else if (kind === "taskResult") events.result(session, value);
    else if (kind === "samples") events.samples(session, value);
    else if (kind === "primaryLeaseRequest") events.primaryLease(session, value);
    // Unknown frames are sent by agents of later releases and are ignored.
  }

  /** Welcomes a standby agent, which takes over after a handover: the welcome proves that it can connect. */
  async function welcomeStandby(session: AgentSession): Promise<void> {
    await events.check(session);
    if (!session.closed) sendWelcome(session, deps);
  }

  function refuse(session: AgentSession, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    log.warn("agent stream refused", { machine: session.machineId, address: session.peer.address, reason });
    end(session, Code.UNAVAILABLE, reason);
  }

  async function welcome(session: AgentSession, call: SessionCall): Promise<void> {
    // Frames that arrive before the welcome wait in the connection's flow-control window.
    call.pause();
    await admit(session.machineId, async () => {
      if (!session.closed) await events.admit(session);
    });
    if (session.closed) return events.closed(session);
    const older = open.get(session.machineId);
    if (older !== undefined && older.arrival > session.arrival) return release(session, "a newer stream is open");
    open.set(session.machineId, session);
    if (older !== undefined) replaceOlder(older, session);
    sendWelcome(session, deps);
    log.info("agent stream open", { machine: session.machineId, address: session.peer.address });
    events.opened(session);
    call.resume();
  }

  /**
   * Replaces a machine's older stream. If it is the same agent (after a renewal of its certificate) or its successor
   * (after a handover), waiting tasks move to the newer stream; otherwise they fail.
   */
  function replaceOlder(older: AgentSession, newer: AgentSession): void {
    const reason = "a newer stream is open";
    const { sessionId = "" } = older.hello ?? {};
    const isContinued = newer.hello?.sessionId === sessionId || newer.hello?.replacesSessionId === sessionId;
    if (sessionId === "" || !isContinued) return release(older, reason);
    log.info("agent stream handed over", { machine: older.machineId, address: older.peer.address });
    older.replaceWith(newer, reason, controllers());
    // The previous agent starts no more tasks, and does not report which tasks it did not start.
    if (newer.hello?.sessionId !== sessionId) {
      for (const { task } of newer.waiting.values()) newer.send({ case: "task", value: task });
    }
    ended.add(older);
    if (leave(older)) removeOpen(older);
  }

  function onClosed(session: AgentSession): void {
    session.markClosed();
    // The final status was sent. Only the connection of a misbehaving agent is closed as well.
    if (!penalties.has(session.machineId)) ended.delete(session);
    if (!leave(session)) return;
    removeOpen(session);
  }

  function leave(session: AgentSession): boolean {
    if (!all.delete(session)) return false;
    streamLimit.leave(session.machineId);
    return true;
  }

  function removeOpen(session: AgentSession): void {
    if (open.get(session.machineId) === session) open.delete(session.machineId);
    events.closed(session);
  }

  function end(session: AgentSession, code: Code, reason: string, goodbye?: readonly string[]): void {
    if (session.closed) return;
    ended.add(session);
    session.end(code, reason, goodbye);
    if (leave(session)) removeOpen(session);
  }

  function cut(session: AgentSession, code: Code, reason: string): void {
    if (session.closed) return;
    log.warn("agent stream cut", { machine: session.machineId, address: session.peer.address, reason });
    const misbehaved = code === Code.INVALID_ARGUMENT || code === Code.RESOURCE_EXHAUSTED;
    if (misbehaved) penalties.add(session.machineId);
    end(session, code, reason);
  }

  function release(session: AgentSession, reason: string): void {
    log.info("agent stream ended", { machine: session.machineId, address: session.peer.address, reason });
    end(session, Code.UNAVAILABLE, reason, controllers());
  }

  return {
    accept,
    get: (machineId) => open.get(machineId),
    values: () => open.values(),
    get size() {
      return open.size;
    },
    cut,
    release,
    welcomeAll() {
      for (const session of open.values()) sendWelcome(session, deps);
    },
    releaseAll(reason) {
      log.info("all agent streams ended", { reason, count: all.size });
      for (const session of all) end(session, Code.UNAVAILABLE, reason, controllers());
    },
    close() {
      clearInterval(checkTimer);
    },
  };
}

/** True for a requested result, which does not count against the rate of unrequested frames. */
function isRequestedResult(session: AgentSession, { frame }: ReceivedFrame): boolean {
  return frame?.frame.case === "taskResult" && session.expectsResult(frame.frame.value.taskId);
}
