import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { concatIncrementally, groupsBySize } from "@holdfast/common/incremental.ts";
import { QueueRequestSchema } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";

/** A message to enqueue, with the bytes of its payload from the request. */
export interface SentMessage {
  readonly payload: Uint8Array;
  readonly delaySeconds: number;
}

/**
 * Encodes the request and its messages in protobuf wire format. Groups of messages are encoded as concatenated
 * requests, which a protobuf parser merges into one, and the function yields to the event loop between groups.
 */
export async function encodeRequest(
  request: MessageInitShape<typeof QueueRequestSchema>,
  messages: readonly SentMessage[],
): Promise<Uint8Array> {
  const parts = [toBinary(QueueRequestSchema, create(QueueRequestSchema, request))];
  for (const group of groupsBySize(messages, ({ payload }) => payload.byteLength)) {
    if (parts.length > 1) await yieldToEventLoop();
    parts.push(toBinary(QueueRequestSchema, create(QueueRequestSchema, { request: enqueueOf(group) })));
  }
  return concatIncrementally(parts);
}

function enqueueOf(group: readonly SentMessage[]) {
  const messages = group.map(({ payload, delaySeconds }) => ({
    payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("utf8"),
    delaySeconds,
  }));
  return { case: "enqueue", value: { messages } } as const;
}
