import { type Duplex, Readable } from "node:stream";
import { isStreamed, type Message, type MessageLimit, MessageReader, packetTypes } from "../protocol/packet.ts";
import { ProtocolError } from "../protocol/protocol-error.ts";

/** Bytes of a streamed message that wait for the session; reading pauses at this size. */
const bodyBytesMax = 256 << 10;

/** Max queued messages; reading pauses while as many wait for the session. */
const queueMax = 2;

export interface Request extends Message {
  /** Aborted when the client cancels the request, also before the session starts it. */
  readonly controller: AbortController;
  hasEnded: boolean;
  /** The packets of a streamed message; undefined for other messages, whose payload is complete. */
  readonly body: RequestBody | undefined;
}

/** The rows of a bulk load as they arrive. It fails if the connection ends before the message does. */
export interface RequestBody extends AsyncIterable<Buffer> {
  /** True if the client canceled the message while it sent it; known at the end. */
  readonly isIgnored: boolean;
}

class Body extends Readable {
  isIgnored = false;
}

/** The messages of one connection in order. An attention bypasses the queue and aborts the request in progress. */
export interface MessageSource {
  /** Undefined at the end of the connection; rejects with the error that ended it. */
  next(): Promise<Request | undefined>;
  /** Stops reading and returns the bytes after the last message. */
  detach(): Buffer;
}

/** `onAttention` receives the last complete request. */
export function createMessageSource(
  stream: Duplex,
  limit: MessageLimit,
  onAttention: (last: Request | undefined) => void,
): MessageSource {
  const reader = new MessageReader(limit);
  const queue: Request[] = [];
  let last: Request | undefined;
  let waiting: PromiseWithResolvers<Request | undefined> | undefined;
  let failure: Error | undefined;
  let hasEnded = false;
  let body: Body | undefined;
  let isFull = false;

  const flow = () => {
    if (failure !== undefined || queue.length >= queueMax || isFull) stream.pause();
    else stream.resume();
  };
  const empty = () => {
    isFull = false;
    flow();
  };
  /** Adds a packet to the message that is streamed; its first one starts the request. */
  const addPacket = (message: Message): Request | undefined => {
    const isFirst = body === undefined;
    body ??= new Body({ highWaterMark: bodyBytesMax, read: empty });
    const current = body;
    // Its consumer may have ended before the connection fails.
    if (isFirst) current.on("error", () => {}).on("close", empty);
    if (message.payload.length > 0 && !current.destroyed) isFull = !current.push(message.payload);
    if (!message.continues) {
      current.isIgnored = message.isIgnored;
      current.push(null);
      body = undefined;
      isFull = false;
    }
    return isFirst
      ? { ...message, isIgnored: false, controller: new AbortController(), hasEnded: false, body: current }
      : undefined;
  };

  const settle = () => {
    if (waiting === undefined) return;
    const message = queue.shift();
    if (message !== undefined) waiting.resolve(message);
    else if (failure !== undefined) waiting.reject(failure);
    else if (hasEnded) waiting.resolve(undefined);
    else return;
    waiting = undefined;
    flow();
  };
  const onData = (chunk: Buffer) => {
    try {
      for (const message of reader.read(chunk)) {
        if (message.type === packetTypes.attention) {
          body?.push(null);
          body = undefined;
          onAttention(last);
          continue;
        }
        const request = isStreamed(message.type)
          ? addPacket(message)
          : { ...message, controller: new AbortController(), hasEnded: false, body: undefined };
        if (request === undefined) continue;
        last = request;
        queue.push(request);
      }
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      body?.destroy(failure);
    }
    flow();
    settle();
  };
  const onEnd = () => {
    hasEnded = true;
    body?.destroy(new ProtocolError("the connection ended inside a message"));
    settle();
  };
  const onError = (error: Error) => {
    failure ??= error;
    body?.destroy(failure);
    settle();
  };
  stream.on("data", onData).on("end", onEnd).on("close", onEnd).on("error", onError);
  stream.resume();
  return {
    next() {
      waiting = Promise.withResolvers();
      const { promise } = waiting;
      settle();
      return promise;
    },
    detach() {
      stream.off("data", onData).off("end", onEnd).off("close", onEnd).off("error", onError);
      stream.pause();
      return reader.takePending();
    },
  };
}
