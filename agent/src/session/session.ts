import { create } from "@bufbuild/protobuf";
import {
  type AgentFrame,
  AgentFrameSchema,
  type ControllerFrame,
  type Hello,
  type RightAnswer,
  type SamplesAck,
  type Welcome,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Task } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import { createWakeGate } from "./wake-gate.ts";

export type OutgoingFrame = AgentFrame["frame"];

/** One stream to one controller that said welcome. */
export interface Session {
  readonly welcome: Welcome;
  readonly channel: ControllerChannel;
  /** As the controller told it last: how long it takes until all of its agents are welcomed again when it dies. */
  readonly fleetReturnMs: number;
  /** Never waits; a controller that does not read is cut. */
  send(frame: OutgoingFrame): void;
  /** Resolves with the reason when the stream is over, or the controller said goodbye. */
  readonly ended: Promise<SessionEnd>;
  close(): void;
  /** Another session took its place: nothing is sent any more, and what the controller sent until it knew is heard. */
  retire(): void;
}

export interface SessionEnd {
  readonly reason: string;
  /** Other controllers that a goodbye named. */
  readonly controllers: readonly string[];
}

/** What a controller asks. */
export interface SessionHandlers {
  onTask(task: Task): void;
  onCancel(taskId: string): void;
  onResultAck(taskId: string): void;
  onSamplesAck(ack: SamplesAck): void;
  onRightAnswer(answer: RightAnswer): void;
  /** Welcomed again: controllers or authorities changed. */
  onNews(welcome: Welcome): void;
  /** The controller at this host:port has fewer agents. */
  onRedirect(controller: string): void;
}

/** What was written before the end has this long to leave. */
const lingerMs = 1_000;
const retiredMs = 5_000;
/** So many heartbeats without an answer, and the controller is gone. */
const missedHeartbeats = 3;
/** No frame for so many heartbeats, less than controllers are patient for: this process may have been paused. */
const sleptHeartbeats = 2;
const largestBacklogFrames = 5_000;

/** Resolves with the controller's welcome; rejects when it refuses or says nothing for so long. */
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
  let answeredAt = monotonicMs();
  let beatAt = answeredAt;
  let heartbeat: NodeJS.Timeout | undefined;
  let intervalMs = Number.POSITIVE_INFINITY;
  let fleetReturnMs = 0;
  let isCut = false;
  let session: Session | undefined;
  const gate = createWakeGate();
  const over = Promise.withResolvers<SessionEnd>();
  const opened = Promise.withResolvers<Session>();

  const silence = setTimeout(() => finish("no welcome in time"), welcomeWithinMs);

  function finish(reason: string): void {
    isCut = true;
    stream.cancel();
    settle(reason);
  }

  /** The controller takes no more, but for what is on its way. */
  function leave(reason: string, controllers: readonly string[]): void {
    stream.end();
    setTimeout(() => stream.cancel(), lingerMs).unref();
    settle(reason, controllers);
  }

  function settle(reason: string, controllers: readonly string[] = []): void {
    clearTimeout(silence);
    clearInterval(heartbeat);
    opened.reject(new Error(reason));
    over.resolve({ reason, controllers });
  }

  function send(frame: OutgoingFrame): void {
    if (stream.destroyed || stream.writableEnded) return;
    if (backlog >= largestBacklogFrames) return finish("the controller does not read");
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
    // What came during a pause of this process is read after its timers.
    const hasSlept = now - beatAt > intervalMs * sleptHeartbeats;
    beatAt = now;
    if (!hasSlept && now - answeredAt > intervalMs * missedHeartbeats) return finish("the controller is silent");
    sendHeartbeat();
  }

  /** The controller's frames are read: they tell that it was there when it sent them. */
  function heard(): void {
    const silentMs = monotonicMs() - answeredAt;
    answeredAt = monotonicMs();
    if (silentMs <= intervalMs * sleptHeartbeats) return;
    sendHeartbeat();
    gate.doubt(sequence);
  }

  function onWelcome(welcome: Welcome): void {
    if (session !== undefined) return handlers.onNews(welcome);
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
      ended: over.promise,
      close: () => finish("closed here"),
      retire,
    };
    opened.resolve(session);
  }

  stream.on("data", ({ frame }: ControllerFrame) => {
    if (isCut) return;
    heard();
    switch (frame.case) {
      case "welcome":
        return onWelcome(frame.value);
      case "task":
        return gate.pass(() => handlers.onTask(frame.value));
      case "cancelTask":
        return gate.pass(() => handlers.onCancel(frame.value.taskId));
      case "resultAck":
        return handlers.onResultAck(frame.value.taskId);
      case "samplesAck":
        return handlers.onSamplesAck(frame.value);
      case "rightAnswer":
        return handlers.onRightAnswer(frame.value);
      case "goodbye":
        return leave(`goodbye: ${frame.value.reason}`, frame.value.controllers);
      case "redirect":
        return handlers.onRedirect(frame.value.controller);
      case "heartbeatAck":
        fleetReturnMs = frame.value.fleetReturnMs;
        return gate.answered(frame.value.sequence);
      case undefined:
        return;
    }
  });
  stream.on("error", (error: Error) => finish(error.message));
  stream.on("end", () => finish("the controller ended the stream"));
  send({ case: "hello", value: hello });
  return opened.promise;
}
