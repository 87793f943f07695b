import { setImmediate as turn } from "node:timers/promises";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { concatIncrementally, groupsBySize } from "@holdfast/common/incremental.ts";
import { QueueRequestSchema } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";

/** A message to enqueue, with its payload as it was sent. */
export interface SentMessage {
  readonly payload: Uint8Array;
  readonly delaySeconds: number;
}

/**
 * The request in protobuf wire format, with these messages in its enqueue. They are encoded in groups that yield to the
 * event loop, as concatenated requests, which a protobuf parser merges into one.
 */
export async function encodeRequest(
  request: MessageInitShape<typeof QueueRequestSchema>,
  messages: readonly SentMessage[],
): Promise<Uint8Array> {
  const parts = [toBinary(QueueRequestSchema, create(QueueRequestSchema, request))];
  for (const group of groupsBySize(messages, ({ payload }) => payload.byteLength)) {
    if (parts.length > 1) await turn();
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
