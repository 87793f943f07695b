import type { Duplex } from "node:stream";
import { type Message, type MessageLimit, MessageReader, packetTypes } from "../protocol/packet.ts";

/** Max queued messages; reading pauses while as many wait for the session. */
const queueMax = 2;

export interface Request extends Message {
  /** Aborted when the client cancels the request, also before the session starts it. */
  readonly controller: AbortController;
  hasEnded: boolean;
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

  const settle = () => {
    if (waiting === undefined) return;
    const message = queue.shift();
    if (message !== undefined) waiting.resolve(message);
    else if (failure !== undefined) waiting.reject(failure);
    else if (hasEnded) waiting.resolve(undefined);
    else return;
    waiting = undefined;
    if (queue.length < queueMax) stream.resume();
  };
  const onData = (chunk: Buffer) => {
    try {
      for (const message of reader.read(chunk)) {
        if (message.type === packetTypes.attention) {
          onAttention(last);
          continue;
        }
        last = { ...message, controller: new AbortController(), hasEnded: false };
        queue.push(last);
      }
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
      stream.pause();
    }
    if (queue.length >= queueMax) stream.pause();
    settle();
  };
  const onEnd = () => {
    hasEnded = true;
    settle();
  };
  const onError = (error: Error) => {
    failure ??= error;
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
