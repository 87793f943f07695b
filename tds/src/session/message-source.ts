import type { Duplex } from "node:stream";
import { type Message, type MessageLimit, MessageReader, packetTypes } from "../protocol/packet.ts";

/** Max queued messages; reading pauses while as many wait for the session. */
const queueMax = 2;

/**
 * The messages of one connection in order. Attentions bypass the queue: `onAttention` is called immediately, also while
 * a request runs.
 */
export interface MessageSource {
  /** Undefined at the end of the connection; rejects with the error that ended it. */
  next(): Promise<Message | undefined>;
  /** Stops reading and returns the bytes after the last message. */
  detach(): Buffer;
}

export function createMessageSource(stream: Duplex, limit: MessageLimit, onAttention: () => void): MessageSource {
  const reader = new MessageReader(limit);
  const queue: Message[] = [];
  let waiting: PromiseWithResolvers<Message | undefined> | undefined;
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
        if (message.type === packetTypes.attention) onAttention();
        else queue.push(message);
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
