import { create } from "@bufbuild/protobuf";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import {
  type AgentFrame,
  AgentFrameSchema,
  type ControllerFrame,
  type Hello,
  type PrimaryLeaseResponse,
  type SamplesAck,
  type Welcome,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Task } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

export type OutgoingFrame = AgentFrame["frame"];

/** An open stream to one controller, which has sent its welcome. */
export interface Session {
  readonly welcome: Welcome;
  readonly channel: ControllerChannel;
  /**
   * Time in milliseconds that this controller's agents need to connect to other controllers if it crashes, by its last
   * report.
   */
  readonly fleetReturnMs: number;
  /** Never blocks. A controller that does not read is disconnected. */
  send(frame: OutgoingFrame): void;
  /** Resolves with the reason once the stream has ended or the controller said goodbye. */
  readonly ended: Promise<SessionEnd>;
  close(): void;
  /** Ends sending after another session replaced this one. Frames that the controller still sends are handled. */
  retire(): void;
}

export interface SessionEnd {
  readonly reason: string;
  /** Other controllers, from the controller's goodbye. */
  readonly controllers: readonly string[];
}

/** Handlers of the controller's frames. */
export interface SessionHandlers {
  onTask(task: Task): void;
  onCancel(taskId: string): void;
  onResultAck(taskId: string): void;
  onSamplesAck(ack: SamplesAck): void;
  onPrimaryLeaseResponse(response: PrimaryLeaseResponse): void;
  /** The controller sent another welcome: controllers or authorities have changed. */
  onWelcomeUpdate(welcome: Welcome): void;
  /** The controller requests that the agent connects to another one (host:port), which has fewer agents. */
  onRedirect(controller: string): void;
}

/** Time for written data to leave before the stream is canceled. */
const lingerMs = 1_000;
const retiredMs = 5_000;
/** The controller counts as silent after this number of heartbeat intervals without a frame. */
const missedHeartbeats = 3;
/**
 * After this number of heartbeat intervals without a frame, less than a controller's own limit, this process may have
 * been paused.
 */
const pausedHeartbeats = 2;
const maxBacklogFrames = 5_000;

/** Resolves once the controller sent its welcome; rejects if it refuses or sends none in time. */
export function openSession(
  channel: ControllerChannel,
  hello: Hello,
  handlers: SessionHandlers,
  monotonicMs: () => number,
  welcomeWithinMs: number,
): Promise<Session> {
  const stream = channel.session();
  let sequence = 0n;
  let backlog = 0;
  let respondedAt = monotonicMs();
  let beatAt = respondedAt;
  let heartbeat: NodeJS.Timeout | undefined;
  let intervalMs = Number.POSITIVE_INFINITY;
  let fleetReturnMs = 0;
  let isCut = false;
  let session: Session | undefined;
  const gate = createHeartbeatGate();
  const ended = Promise.withResolvers<SessionEnd>();
  const opened = Promise.withResolvers<Session>();

  const silence = setTimeout(() => finish("no welcome in time"), welcomeWithinMs);

  function finish(reason: string): void {
    isCut = true;
    stream.cancel();
    settle(reason);
  }

  /** The controller accepts nothing more except what is already in transit. */
  function leave(reason: string, controllers: readonly string[]): void {
    stream.end();
    setTimeout(() => stream.cancel(), lingerMs).unref();
    settle(reason, controllers);
  }

  function settle(reason: string, controllers: readonly string[] = []): void {
    clearTimeout(silence);
    clearInterval(heartbeat);
    opened.reject(new Error(reason));
    ended.resolve({ reason, controllers });
  }

  function send(frame: OutgoingFrame): void {
    if (stream.destroyed || stream.writableEnded) return;
    if (backlog >= maxBacklogFrames) return finish("the controller does not read");
    sequence += 1n;
    backlog += 1;
    stream.write(create(AgentFrameSchema, { sequence, frame }), () => {
      backlog -= 1;
    });
  }

  function sendHeartbeat(): void {
    send({ case: "heartbeat", value: { $typeName: "holdfast.agent.v1.Heartbeat" } });
  }

  function beat(): void {
    const now = monotonicMs();
    // Frames that arrived while this process was paused are read only after its timers.
    const wasPaused = now - beatAt > intervalMs * pausedHeartbeats;
    beatAt = now;
    if (!wasPaused && now - respondedAt > intervalMs * missedHeartbeats) return finish("the controller is silent");
    sendHeartbeat();
  }

  /** A frame was read: the controller was alive when it sent it. */
  function onFrame(): void {
    const silentMs = monotonicMs() - respondedAt;
    respondedAt = monotonicMs();
    if (silentMs <= intervalMs * pausedHeartbeats) return;
    sendHeartbeat();
    gate.close(sequence);
  }

  function onWelcome(welcome: Welcome): void {
    if (session !== undefined) return handlers.onWelcomeUpdate(welcome);
    clearTimeout(silence);
    intervalMs = Math.max(welcome.heartbeatIntervalMs, 100);
    beatAt = monotonicMs();
    heartbeat = setInterval(beat, intervalMs);
    const retire = () => {
      setTimeout(() => finish("another session took its place"), retiredMs).unref();
    };
    session = {
      welcome,
      channel,
      get fleetReturnMs() {
        return fleetReturnMs;
      },
      send,
      ended: ended.promise,
      close: () => finish("closed here"),
      retire,
    };
    opened.resolve(session);
  }

  stream.on("data", ({ frame }: ControllerFrame) => {
    if (isCut) return;
    onFrame();
    switch (frame.case) {
      case "welcome":
        return onWelcome(frame.value);
      case "task":
        return gate.run(() => handlers.onTask(frame.value));
      case "cancelTask":
        return gate.run(() => handlers.onCancel(frame.value.taskId));
      case "resultAck":
        return handlers.onResultAck(frame.value.taskId);
      case "samplesAck":
        return handlers.onSamplesAck(frame.value);
      case "primaryLeaseResponse":
        return handlers.onPrimaryLeaseResponse(frame.value);
      case "goodbye":
        return leave(`goodbye: ${frame.value.reason}`, frame.value.controllers);
      case "redirect":
        return handlers.onRedirect(frame.value.controller);
      case "heartbeatAck":
        fleetReturnMs = frame.value.fleetReturnMs;
        return gate.confirm(frame.value.sequence);
      case undefined:
        return;
    }
  });
  stream.on("error", (error: Error) => finish(error.message));
  stream.on("end", () => finish("the controller ended the stream"));
  send({ case: "hello", value: hello });
  return opened.promise;
}

/**
 * Defers tasks that this process read only after it was paused. By then the controller may have closed the stream and
 * reported the tasks as not started. A response to a heartbeat sent after the pause proves that it has not. Without
 * such a response, the deferred tasks are dropped with the stream.
 */
interface HeartbeatGate {
  /** Defers actions until the response to this heartbeat confirms the stream. */
  close(heartbeat: bigint): void;
  /** Runs the action now, or in order once the stream is confirmed. */
  run(action: () => void): void;
  confirm(heartbeat: bigint): void;
}

function createHeartbeatGate(): HeartbeatGate {
  let deferred: (() => void)[] = [];
  /** Heartbeat whose response confirms the stream; undefined while the stream is confirmed. */
  let awaitedHeartbeat: bigint | undefined;

  return {
    close(heartbeat) {
      awaitedHeartbeat = heartbeat;
    },
    run(action) {
      if (awaitedHeartbeat === undefined) action();
      else deferred.push(action);
    },
    confirm(heartbeat) {
      if (awaitedHeartbeat === undefined || heartbeat < awaitedHeartbeat) return;
      awaitedHeartbeat = undefined;
      const actions = deferred;
      deferred = [];
      for (const action of actions) action();
    },
  };
}
