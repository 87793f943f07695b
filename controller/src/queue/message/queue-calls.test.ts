import { create, fromBinary } from "@bufbuild/protobuf";
import { QueueRequestSchema } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { expect, test } from "vitest";
import { encodeRequest } from "./queue-calls.ts";

test("messages encoded in groups are parsed as one enqueue, in order", async () => {
  const request = { case: "enqueue", value: { taskId: "t", bodyHash: "h" } } as const;
  const texts = Array.from({ length: 10 }, (_, n) => `{"n":${n},"t":"${"é".repeat(n * 50_000)}"}`);
  const messages = texts.map((text, n) => ({ payload: new Uint8Array(Buffer.from(text)), delaySeconds: n }));
  const complete = { ...request.value, messages: texts.map((payload, delaySeconds) => ({ payload, delaySeconds })) };
  const expected = create(QueueRequestSchema, { queue: "q", request: { case: "enqueue", value: complete } });
  expect(fromBinary(QueueRequestSchema, await encodeRequest({ queue: "q", request }, messages))).toEqual(expected);
});
