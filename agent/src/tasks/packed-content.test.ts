import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { QueueRequestSchema } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { expect, test } from "vitest";
import { decodeIncrementally } from "./packed-content.ts";

const part = (sizes: readonly number[], more: object = {}) => {
  const messages = sizes.map((size) => ({ payload: "é".repeat(size), delaySeconds: size }));
  const init = { ...more, request: { case: "enqueue", value: { taskId: "t", messages } } } as const;
  return toBinary(QueueRequestSchema, create(QueueRequestSchema, init));
};

test("incremental decoding equals decoding in one call, for one part and for several", async () => {
  for (const parts of [
    [],
    [part([1, 2], { queue: "q" })],
    [part([0], { queue: "q" }), part([400_000, 300_000]), part([600_000]), part([3])],
  ]) {
    const bytes = Buffer.concat(parts);
    expect(await decodeIncrementally(QueueRequestSchema, bytes)).toEqual(fromBinary(QueueRequestSchema, bytes));
  }
});

test("a truncated message is refused", async () => {
  await expect(decodeIncrementally(QueueRequestSchema, part([10, 20]).subarray(0, -1))).rejects.toThrow();
});
