import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createTokenBucket } from "@holdfast/common/token-bucket.ts";
import type { Peer } from "@holdfast/mtls/peer.ts";
import type {
  InstanceObservation,
  RightRequest,
  Samples,
  TaskProgress,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createAdmissionTurns } from "./admission-turns.ts";
import type { ReceivedFrame } from "./agent-definitions.ts";
import { helloFault } from "./bounded-frames.ts";
import { createPenalties } from "./penalties.ts";
import { createSession, type Session, type SessionCall } from "./session.ts";
import type { SessionLimits } from "./session-limits.ts";
import { createStreamPlaces } from "./stream-places.ts";
import { sendWelcome, type WelcomeDeps } from "./welcome.ts";

/** What the streams' frames lead to. */
export interface SessionEvents {
  /** Throws to refuse a stream that said hello. */
  check(session: Session): Promise<unknown>;
  /** Checks and announces a stream that said hello; throws to refuse it. */
  admit(session: Session): Promise<void>;
  /** The stream is in place and welcomed. */
  opened(session: Session): void;
  observation(session: Session, instance: InstanceObservation): void;
  progress(session: Session, progress: TaskProgress): void;
  result(session: Session, result: TaskResult): void;
  samples(session: Session, samples: Samples): void;
  right(session: Session, request: RightRequest): void;
  closed(session: Session): void;
}

export interface SessionsDeps extends WelcomeDeps {
  readonly limits: SessionLimits;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends the connection behind a stream. */
  readonly disconnect: (address: string) => void;
  readonly events: SessionEvents;
}

/** The streams that are here: who is on them, whether they behave, which one of a machine counts. */
export interface Sessions {
  accept(call: SessionCall, peer: Peer): void;
  get(machineId: string): Session | undefined;
  values(): IterableIterator<Session>;
  readonly size: number;
  /** Ends a stream for cause: logged, and its machine is refused for a moment. */
  cut(session: Session, code: Code, reason: string): void;
  /** Ends a stream that did nothing wrong. */
  release(session: Session, reason: string): void;
  /** Tells every agent again which controllers and authorities there are, and whether this one may act. */
  greetAll(): void;
  /** Goodbye to everyone. */
  releaseAll(reason: string): void;
  close(): void;
}

/** A status that a peer does not read is not waited for. */
const lingerMs = 1_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { limits, clock, log, controllers, disconnect, events } = deps;
  const all = new Set<Session>();
  const places = createStreamPlaces(limits, clock);
  const open = new Map<string, Session>();
  const ended = new Set<Session>();
  /** Hellos of one machine are admitted one after the other, so that the last one's presence is written last. */
  const admissions = createAdmissionTurns();
  const penalties = createPenalties(limits.penaltyMs, clock);
  let arrivals = 0;
  let tickedMs = clock.monotonicMs();
  // One timer for all streams, however many.
  const ticking = setInterval(tick, limits.tickMs).unref();

  function tick(): void {
    const nowMs = clock.monotonicMs();
    const now = clock.now();
    // While this process stood still it read nothing: what agents said meanwhile comes before the next look.
    const stoodStill = nowMs - tickedMs > 2 * limits.tickMs;
    tickedMs = nowMs;
    for (const session of stoodStill ? [] : all) {
      if (session.hello === undefined) {
        if (nowMs - session.startedMs > limits.helloMs) cut(session, Code.DEADLINE_EXCEEDED, "no hello");
      } else if (nowMs - session.lastSeenMs > limits.silenceMs) cut(session, Code.DEADLINE_EXCEEDED, "silent");
      else if (now > session.peer.endsAt) cut(session, Code.UNAUTHENTICATED, "certificate ended");
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
    if (!places.take(peer.identity.id)) {
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
    const answerBytes = createTokenBucket(limits.answerBytes, nowMs);
    all.add(session);
    call.on("cancelled", () => gone(session));
    call.on("end", () => {
      if (!session.closed || session.heir !== undefined) call.end();
      gone(session);
    });
    call.on("data", (received: ReceivedFrame) => {
      try {
        hear(received);
      } catch (error) {
        // Out of a callback it would end the controller, and with it the streams of all machines.
        log.error("agent frame failed", { machine: session.machineId, frame: received.frame?.frame.case, error });
        cut(session, Code.INTERNAL, "a frame failed");
      }
    });
    function hear(received: ReceivedFrame): void {
      if (session.closed) return lastWords(session, received);
      const atMs = clock.monotonicMs();
      session.lastSeenMs = atMs;
      if (isAnswer(session, received)) {
        const waitMs = answerBytes.spend(received.sizeBytes, atMs);
        if (waitMs > 0) rest(session, call, waitMs);
        receive(session, call, received);
      } else if (!frames.take(1, atMs) || !bytes.take(received.sizeBytes, atMs)) {
        call.pause();
        cut(session, Code.RESOURCE_EXHAUSTED, "too many frames");
      } else receive(session, call, received);
    }
    if (penalties.has(session.machineId)) release(session, "cut a moment ago");
  }

  /** Reads nothing of the stream for so long. */
  function rest(session: Session, call: SessionCall, waitMs: number): void {
    call.pause();
    setTimeout(() => {
      if (!session.closed || session.heir !== undefined) call.resume();
    }, waitMs).unref();
  }

  /** A result that was under way when the agent changed streams. What it sees it tells again by the newer one. */
  function lastWords(session: Session, { frame }: ReceivedFrame): void {
    let heir = session.heir;
    while (heir?.heir !== undefined) heir = heir.heir;
    if (heir !== undefined && frame?.frame.case === "taskResult") events.result(heir, frame.frame.value);
  }

  function receive(session: Session, call: SessionCall, { frame }: ReceivedFrame): void {
    if (frame === undefined) return cut(session, Code.INVALID_ARGUMENT, "not a frame");
    const { case: kind, value } = frame.frame;
    if (kind === "hello") {
      if (session.hello !== undefined) return cut(session, Code.INVALID_ARGUMENT, "a second hello");
      if (value.machineId !== session.machineId) {
        return cut(session, Code.PERMISSION_DENIED, "hello for another machine");
      }
      const fault = helloFault(value);
      if (fault !== undefined) return cut(session, Code.INVALID_ARGUMENT, fault);
      session.hello = value;
      const welcomed = value.standby ? welcomeStandby(session) : welcome(session, call);
      welcomed.catch((error: unknown) => refuse(session, error));
      return;
    }
    if (session.hello === undefined) return cut(session, Code.INVALID_ARGUMENT, "a frame before hello");
    if (kind !== "heartbeat" && session.hello.standby) {
      return cut(session, Code.INVALID_ARGUMENT, "a standby has nothing to say");
    }
    if (kind === "heartbeat") {
      const fleetReturnMs = Math.ceil(open.size * limits.returnMs);
      session.send({ case: "heartbeatAck", value: { sequence: frame.sequence, fleetReturnMs } });
    } else if (kind === "observation") {
      if (value.instance !== undefined) events.observation(session, value.instance);
    } else if (kind === "taskProgress") events.progress(session, value);
    else if (kind === "taskResult") events.result(session, value);
    else if (kind === "samples") events.samples(session, value);
    else if (kind === "rightRequest") events.right(session, value);
    // A frame of a kind that came later than this controller's version means nothing to it.
  }

  /** An agent that another one of its machine is to hand over to: it learns that it would be taken, and no more. */
  async function welcomeStandby(session: Session): Promise<void> {
    await events.check(session);
    if (!session.closed) sendWelcome(session, deps);
  }

  function refuse(session: Session, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    log.warn("agent stream refused", { machine: session.machineId, address: session.peer.address, reason });
    end(session, Code.UNAVAILABLE, reason);
  }

  async function welcome(session: Session, call: SessionCall): Promise<void> {
    // What comes meanwhile waits in the connection's own window.
    call.pause();
    await admissions.run(session.machineId, async () => {
      if (!session.closed) await events.admit(session);
    });
    if (session.closed) return events.closed(session);
    const older = open.get(session.machineId);
    if (older !== undefined && older.arrival > session.arrival) return release(session, "a newer stream is open");
    open.set(session.machineId, session);
    if (older !== undefined) giveWay(older, session);
    sendWelcome(session, deps);
    log.info("agent stream open", { machine: session.machineId, address: session.peer.address });
    events.opened(session);
    call.resume();
  }

  /**
   * The same agent renewed its certificate, or the next one took its place, or another one is in the machine: only the first
   * two go on with its tasks.
   */
  function giveWay(older: Session, newer: Session): void {
    const reason = "a newer stream is open";
    const { sessionId = "" } = older.hello ?? {};
    const goesOn = newer.hello?.sessionId === sessionId || newer.hello?.succeeds === sessionId;
    if (sessionId === "" || !goesOn) return release(older, reason);
    log.info("agent stream handed over", { machine: older.machineId, address: older.peer.address });
    older.handOver(newer, reason, controllers());
    // The agent of before begins nothing any more, and what it did not begin it does not tell.
    if (newer.hello?.sessionId !== sessionId) {
      for (const { task } of newer.waiting.values()) newer.send({ case: "task", value: task });
    }
    ended.add(older);
    if (leave(older)) forget(older);
  }

  function gone(session: Session): void {
    session.gone();
    // The status has reached its connection; only one that misbehaved loses that as well.
    if (!penalties.has(session.machineId)) ended.delete(session);
    if (!leave(session)) return;
    forget(session);
  }

  function leave(session: Session): boolean {
    if (!all.delete(session)) return false;
    places.leave(session.machineId);
    return true;
  }

  function forget(session: Session): void {
    if (open.get(session.machineId) === session) open.delete(session.machineId);
    events.closed(session);
  }

  function end(session: Session, code: Code, reason: string, goodbye?: readonly string[]): void {
    if (session.closed) return;
    ended.add(session);
    session.end(code, reason, goodbye);
    if (leave(session)) forget(session);
  }

  function cut(session: Session, code: Code, reason: string): void {
    if (session.closed) return;
    log.warn("agent stream cut", { machine: session.machineId, address: session.peer.address, reason });
    const misbehaved = code === Code.INVALID_ARGUMENT || code === Code.RESOURCE_EXHAUSTED;
    if (misbehaved) penalties.add(session.machineId);
    end(session, code, reason);
  }

  function release(session: Session, reason: string): void {
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
    greetAll() {
      for (const session of open.values()) sendWelcome(session, deps);
    },
    releaseAll(reason) {
      log.info("all agent streams ended", { reason, count: all.size });
      for (const session of all) end(session, Code.UNAVAILABLE, reason, controllers());
    },
    close() {
      clearInterval(ticking);
    },
  };
}

/** A result that was asked for. An agent must not be punished for answering, however often it is asked. */
function isAnswer(session: Session, { frame }: ReceivedFrame): boolean {
  return frame?.frame.case === "taskResult" && session.takesAnswer(frame.frame.value.taskId);
}
