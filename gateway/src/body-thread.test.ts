import { setImmediate as turn } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import { QueueService } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { expect, test } from "vitest";
import { createBodyThread } from "./body-thread.ts";
import { compileInput, type ParsedBody, parseBody } from "./input.ts";
import { bodyShapeOf } from "./json/body-shape.ts";
import { createDecoders } from "./json/decode.ts";
import { createFaults } from "./json/faults.ts";
import { hashOf } from "./json/json-node.ts";
import { describeMethods } from "./method.ts";
import { createValidation } from "./validation.ts";

const handlers = Object.fromEntries(QueueService.methods.map(({ localName }) => [localName, async () => ({})]));
const methods = describeMethods([{ service: QueueService, handlers, checks: {} }]);
const enqueue = methods.find(({ description }) => description.name === "EnqueueMessages");
if (enqueue?.rest === undefined) throw new Error("messages cannot be sent");
const { rest, description } = enqueue;
const shape = bodyShapeOf(rest.bodyFields);
const build = compileInput(enqueue, rest, createDecoders(), createValidation());
const thread = createBodyThread();

const read = (text: string) => {
  if (shape === undefined) throw new Error("payloads are not raw");
  return thread.parse({ bytes: Buffer.from(text), shape, keyed: true });
};

function inputOf(body: ParsedBody) {
  const faults = createFaults();
  const input = build(["service", "queue"], "", body, faults);
  // As binary, so that the kind of array of raw values does not matter.
  return { input: Buffer.from(toBinary(description.input, input)), faults: faults.list, omitted: faults.omitted };
}

test.each([
  ['{"messages":[{"payload":{"n":12345678901234567890.10, "t":"\\u00e9é\\n"},"delay_seconds":3},{"payload": [] }]}'],
  ['{"messages":[{"payload":{},"payload":{}},{"delay_seconds":[[1],{"a":1}]},[[{"payload":{}}]],null]}'],
  ['{"messages":{"payload":{"a":1}},"other":[{"payload":{}}],"other":1}'],
  [`{"messages":[${Array.from({ length: 200 }, () => '{"payload":{}}').join(",")}]}`],
  ["{}"],
])("%s is parsed in the thread as on the event loop", async (text) => {
  const here = parseBody(Buffer.from(text));
  const there = await read(text);
  expect(inputOf(there)).toEqual(inputOf(here));
  expect(there.hash).toBe(hashOf(here.value));
});

test.each([["["], ["[]"], ['{"a":\n}'], ["\u0000"]])("%s has the same error message", async (text) => {
  let message: unknown;
  try {
    parseBody(Buffer.from(text));
  } catch (error) {
    message = (error as Error).message;
  }
  await expect(read(text)).rejects.toThrow(message as string);
});

test("the event loop is not blocked while a large body is parsed", async () => {
  const text = `{"messages":[{"payload":{"t":"${"\\n".repeat(4 << 20)}"}}]}`;
  let isRead = false;
  const reading = read(text).finally(() => {
    isRead = true;
  });
  let iterations = 0;
  for (; !isRead; iterations += 1) await turn();
  expect(inputOf(await reading).faults).toEqual([]);
  expect(iterations).toBeGreaterThan(2);
});
